"""Docker-less Lambda executor: runs `bootstrap` as a child process against a
small in-process Runtime API server (one per execution environment)."""
import importlib
import json
import logging
import os
import signal
import socket
import subprocess
import threading
import time
from datetime import datetime, timezone
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LOG = logging.getLogger("processexec")
API = "/2018-06-01/runtime/"


class Env:
    """One execution environment: Runtime API server + bootstrap process."""

    def __init__(self, code_dir, env_vars):
        self.code_dir = str(code_dir)
        self.timeout = float(env_vars.get("AWS_LAMBDA_FUNCTION_TIMEOUT", 3))
        self.cv = threading.Condition()
        self.pending = None  # invocation waiting for `next`
        self.current = None  # request id being worked on
        self.result = None  # (is_error, bytes)
        self.ready = threading.Event()
        self.init_error = None
        self.lines = []
        self.all_logs = []
        self.proc = None
        self.stopped = False
        outer = self

        class H(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one segment per reply: no 40 ms delayed-ACK stalls
            disable_nagle_algorithm = True

            def log_message(self, *a):
                pass

            def _reply(self, code, body=b"", headers=()):
                self.send_response(code)
                for k, v in headers:
                    self.send_header(k, v)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                    self.wfile.flush()
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def _gone(self):
                try:
                    return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
                except BlockingIOError:
                    return False
                except OSError:
                    return True

            def _body(self):
                if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                    out = b""
                    while n := int(self.rfile.readline().split(b";")[0], 16):
                        out += self.rfile.read(n)
                        self.rfile.readline()
                    while self.rfile.readline().strip():
                        pass
                    return out
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def do_GET(self):
                if self.path != API + "invocation/next":
                    return self._reply(404)
                outer.ready.set()
                with outer.cv:
                    while outer.pending is None and not outer.stopped:
                        outer.cv.wait()
                    if outer.stopped:
                        return self._reply(410)
                    if self._gone():  # killed while it was idle: the invocation is for its successor
                        self.close_connection = True
                        return
                    inv, outer.pending = outer.pending, None
                self._reply(
                    200,
                    inv["payload"].encode(),
                    [
                        ("Content-Type", "application/json"),
                        ("Lambda-Runtime-Aws-Request-Id", inv["invoke-id"]),
                        ("Lambda-Runtime-Invoked-Function-Arn", inv["invoked-function-arn"]),
                        ("Lambda-Runtime-Trace-Id", inv["trace-id"]),
                        ("Lambda-Runtime-Deadline-Ms", str(int((time.time() + outer.timeout) * 1000))),
                    ],
                )

            def do_POST(self):
                body = self._body()
                if self.path == API + "init/error":
                    outer.init_error = body
                    outer.ready.set()
                    return self._reply(202, b'{"status":"OK"}')
                parts = self.path[len(API):].split("/")
                if len(parts) != 3 or parts[2] not in ("response", "error"):
                    return self._reply(404)
                with outer.cv:
                    if parts[1] == outer.current and outer.result is None:
                        outer.result = (parts[2] == "error", body)
                        outer.cv.notify_all()
                self._reply(202, b'{"status":"OK"}')

        self.srv = ThreadingHTTPServer(("127.0.0.1", 0), H)
        self.srv.daemon_threads = True
        threading.Thread(target=self.srv.serve_forever, daemon=True).start()
        self.env = {k: str(v) for k, v in env_vars.items()}
        self.env.update(
            PATH="/usr/local/bin:/usr/bin:/bin",
            LANG="en_US.UTF-8",
            HOME="/tmp",
            AWS_LAMBDA_RUNTIME_API=f"127.0.0.1:{self.srv.server_port}",
            LAMBDA_TASK_ROOT=self.code_dir,
        )
        self.env.setdefault("_HANDLER", "bootstrap")

    def spawn(self, wait=10):
        self.ready.clear()
        self.init_error = None
        exe = os.path.join(self.code_dir, "bootstrap")
        os.chmod(exe, 0o755)
        self.proc = subprocess.Popen(
            [exe], cwd=self.code_dir, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,  # in our process group: it ends with us
        )
        threading.Thread(target=self._pump, args=(self.proc,), daemon=True).start()
        end = time.time() + wait
        while not self.ready.wait(0.005):
            if self.proc.poll() is not None:
                raise RuntimeError(f"bootstrap exited with {self.proc.returncode} during init")
            if time.time() > end:
                self.kill()
                raise RuntimeError("bootstrap did not ask for an invocation in time")

    def _pump(self, proc):
        for raw in proc.stdout:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            self.lines.append(line)
            self.all_logs.append(line)
        proc.wait()
        with self.cv:
            self.cv.notify_all()

    def kill(self):
        p = self.proc
        if p and p.poll() is None:
            p.kill()
            p.wait()

    def invoke(self, inv):
        rid = inv["invoke-id"]
        self.lines = []
        t0 = time.time()
        if self.proc is None or self.proc.poll() is not None:
            self.spawn()
        with self.cv:
            self.result, self.current, self.pending = None, rid, inv
            self.cv.notify_all()
            end = t0 + self.timeout
            while self.result is None:
                left = end - time.time()
                if self.stopped:
                    self.result = (True, b'{"errorMessage":"environment stopped","errorType":"Runtime.Stopped"}')
                elif self.proc.poll() is not None:
                    rc = self.proc.returncode
                    why = f"exit status {rc}" if rc >= 0 else f"signal: {signal.Signals(-rc).name}"
                    msg = f"RequestId: {rid} Error: Runtime exited with error: {why}"
                    self.result = (True, json.dumps({"errorType": "Runtime.ExitError", "errorMessage": msg}).encode())
                elif left <= 0:
                    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
                    msg = f"{now} {rid} Task timed out after {self.timeout:.2f} seconds"
                    self.result = (True, json.dumps({"errorType": "Sandbox.Timedout", "errorMessage": msg}).encode())
                    self.pending = None
                else:
                    self.cv.wait(min(left, 0.5))
            err, body = self.result
            self.current = None
        if b"Sandbox.Timedout" in body[:40]:
            self.kill()  # next invocation starts a new process
        time.sleep(0.002)  # let the pump drain
        ms = (time.time() - t0) * 1000
        logs = "\n".join(
            [f"START RequestId: {rid} Version: $LATEST", *self.lines, f"END RequestId: {rid}",
             f"REPORT RequestId: {rid}\tDuration: {ms:.2f} ms\tBilled Duration: {int(ms) + 1} ms"]
        )
        return err, body, logs

    def stop(self):
        with self.cv:
            self.stopped = True
            self.cv.notify_all()
        self.kill()
        self.srv.shutdown()
        self.srv.server_close()


@lru_cache(None)
def make(pkg):
    inv = f"{pkg}.services.lambda_.invocation."
    rt = importlib.import_module(inv + "runtime_executor")
    models = importlib.import_module(inv + "lambda_models")
    ep = importlib.import_module(inv + "executor_endpoint")
    config = importlib.import_module(f"{pkg}.config")

    class ProcessRuntimeExecutor(rt.RuntimeExecutor):
        def __init__(self, id, function_version):
            super().__init__(id=id, function_version=function_version)
            self.e = None

        def start(self, env_vars):
            fn = self.function_version
            self.e = Env(fn.config.code.get_unzipped_code_location(), env_vars)
            try:
                self.e.spawn()
            except Exception as exc:
                logs = "\n".join(self.e.all_logs)
                LOG.warning("init failed: %s %s", exc, logs[-2000:])
                raise ep.StatusErrorException(
                    str(exc),
                    payload=json.dumps({"errorType": "Runtime.InitError", "errorMessage": str(exc)}).encode(),
                ) from exc
            if self.e.init_error is not None:
                raise ep.StatusErrorException("init error", payload=self.e.init_error)

        def stop(self):
            if self.e:
                self.e.stop()

        def get_address(self):
            return "127.0.0.1"

        def get_endpoint_from_executor(self):
            return "127.0.0.1"

        def get_runtime_endpoint(self):
            return f"http://127.0.0.1:{config.GATEWAY_LISTEN[0].port}/_processexec/{self.id}"

        def invoke(self, payload, function_timeout=None):
            err, body, logs = self.e.invoke(payload)
            return models.InvocationResult(payload["invoke-id"], body, is_error=err, logs=logs)

        def get_logs(self):
            return "\n".join(self.e.all_logs) if self.e else ""

        @classmethod
        def prepare_version(cls, function_version):
            if function_version.config.code:
                function_version.config.code.prepare_for_execution()

        @classmethod
        def cleanup_version(cls, function_version):
            pass

        @classmethod
        def validate_environment(cls):
            return True

    return ProcessRuntimeExecutor
