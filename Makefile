# Everything a developer does here. `make` alone lists the targets.
#
# The work is done by one program, localstack/cmd/stack: it installs pinned tools into .local/tools, builds what changed,
# and prints each step with its time. `go build` is a matter of a second when nothing changed.

STACK    := .local/build/bin/stack
EMULATOR ?= ministack
ARCH     ?= arm64
export EMULATOR
# What goes to a stage in AWS, changes something there, or takes its alarms off is said with the command. A variable that is left in a
# shell's environment would turn a command for the running stack into one for production.
said      = $(if $(filter command,$(origin $1)),$(filter 1,$($1)))
left      = $(filter environment%,$(origin STAGE))
IDEMCTL   = $(if $(STAGE),$(if $(left),$(error STAGE is set in the environment: write make $@ STAGE=$(STAGE), or unset STAGE for the running stack))$(STACK) idemctl --stage $(STAGE) --,go run ./functions/cmd/idemctl --env-file .local/run.env)
# Go's workspace is the checkout's own: who starts it from a module of another folder may have switched workspaces off.
unexport GOWORK

.DEFAULT_GOAL := help
.PHONY: help tools cdk run up down status logs invoke build test test-fast test-whole test-unit test-race test-infra test-browser test-simulate test-e2e flakes chaos rehearse rehearse-upgrade lint audit openapi idemctl console drift fuzz prove soak simulate planted alike mutants bench capacity dynamodb docs docs-serve fmt bootstrap deploy diff destroy release-check release release-binaries release-clients lint-all vulnerabilities stack

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  EMULATOR=localstack runs on LocalStack instead of ministack; ENCRYPTION=on encrypts responses and payloads per tenant; OUTBOX=sqs wakes the worker through a queue (rehearsals do both unless told otherwise); TRACES=on starts an OpenTelemetry collector."

tools: stack ## install the pinned tools into .local/tools
	@$(STACK) tools

cdk: stack ## print the path of the pinned CDK's command line, which it installs where it is missing (make -s prints nothing else)
	@$(STACK) cdk

run: stack ## start the stack, send example requests, serve the operator's console, follow the logs (Ctrl-C leaves the stack running): [RAW=1]
	@$(STACK) run $(if $(RAW),--raw)

up: stack ## start the stack, or update it; variables in .local/run.env
	@$(STACK) up

down: stack ## stop the stack
	@$(STACK) down

status: stack ## show which parts of the stack run
	@$(STACK) status

logs: stack ## follow the functions' logs, one short line each: [RAW=1 for the JSON lines]
	@$(STACK) logs $(if $(RAW),--raw)

invoke: stack ## call one function: FN=api EVENT=events/<file>.json
	@$(STACK) invoke --function "$(FN)" --event "$(EVENT)"

build: stack ## build the functions for Lambda: ARCH=arm64 (default) or amd64
	@$(STACK) build --arch $(ARCH)

test: stack ## what continuous integration runs: lint, unit, store, race, browser and infra tests, the protocol explored, end-to-end tests; the second emulator and the browser at every third commit
	@$(STACK) test

test-fast: stack ## the checks to run while you edit: gofmt, vet, the tests of the library and the functions without the long ones
	@$(STACK) test fast

test-whole: stack ## every test everywhere, for nightly runs and releases: about two hours
	@$(STACK) test --whole

flakes: stack ## the whole check again and again on the same code, each time as the next commit's would be, and which tests failed in how many runs: [RUNS=10 FREEZE=3s, which lets processes stand for up to so long]
	@$(STACK) flakes --runs $(or $(RUNS),10) --freeze $(or $(FREEZE),0s)

test-unit: stack ## unit and store tests of every module but infra, the store's on dynoxide and DynamoDB Local
	@$(STACK) test unit

test-race: stack ## the library's tests with the race detector
	@$(STACK) test race

test-browser: stack ## the console and the documentation site, in Debian's Chromium
	@$(STACK) test browser

test-simulate: stack ## stories in simulated time and crashes at every call, as many as make test plays
	@$(STACK) test simulate

test-infra: stack ## tests of the CDK app: assertions, cfn-lint and cdk-nag on its templates
	@$(STACK) test infra

test-e2e: stack ## end-to-end tests on ministack, and on LocalStack where it can run
	@$(STACK) test e2e

chaos: stack ## payments and transfers while processes are killed at random: [N=1000 SEED= HASTEN=1]; prints the seed, which repeats the plan
	@$(STACK) chaos --requests $(or $(N),1000) $(if $(SEED),--seed $(SEED)) $(if $(HASTEN),--hasten)

rehearse: stack ## lose data under load and recover it by the runbooks of docs/recovery.md, counting the money: [ONLY=restore OUTBOX=streams ENCRYPTION=off]
	@$(STACK) rehearse $(ONLY)

rehearse-upgrade: stack ## deploy this release over an earlier one and go back, under load, counting the money: [FROM=v1.2.3 OUTBOX=streams ENCRYPTION=off], FROM by default the newest tag v… or HEAD~1
	@$(STACK) rehearse-upgrade $(if $(FROM),--from "$(FROM)")

lint: stack ## gofmt, go mod tidy, go vet, staticcheck
	@$(STACK) test lint

lint-all: stack ## golangci-lint by the rules of .golangci.yml; the first time it is built, which takes two minutes
	@$(STACK) lint-all

vulnerabilities: ## known vulnerabilities in what the modules call (govulncheck; asks vuln.go.dev)
	@GOBIN="$(CURDIR)/.local/bin" go install golang.org/x/vuln/cmd/govulncheck@v1.9.0
	@git ls-files -- '*go.mod' | while read -r file; do \
		(cd "$$(dirname "$$file")" && GOWORK=off "$(CURDIR)/.local/bin/govulncheck" ./...) || exit 1; \
	done

audit: ## list every route with its operation, policy and retention; fail on a gap or a released name that vanished
	@go run ./functions/cmd/audit

fuzz: ## fuzz every target of the library in turn: TIME=10m each (default 1m), ONLY=Decode for a part
	@listed=$$(go test -list '^Fuzz' ./idem/...) || { echo "$$listed"; exit 1; }; \
	targets=$$(echo "$$listed" | awk '/^Fuzz/ { t[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, t[i]; n = 0 }' | grep '$(ONLY)') || { echo "no target has '$(ONLY)' in its name"; exit 1; }; \
	echo "$$targets" | while read -r package target; do \
		echo "$$package $$target"; \
		go test $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(or $(TIME),1m) -fuzzminimizetime 1s -parallel 1 || exit 1; \
	done

openapi: ## hold functions/api/openapi.yaml against OpenAPI's schema and the application
	@go test ./functions/internal/openapi && go test ./functions/internal/payments -run Document

idemctl: $(if $(STAGE),stack) ## the operator's command on the running stack, or on a deployed stage: [STAGE=prod] ARGS="list unknown", ARGS="inspect op_…" (docs/operator.md)
	@$(IDEMCTL) $(ARGS)

console: $(if $(STAGE),stack) ## the operator's console, a page on this machine, on the running stack or on a stage: [STAGE=prod] [WRITE=1] [ARGS="--port 8080 --open"]
	@$(IDEMCTL) console $(if $(call said,WRITE),--write) $(ARGS)

drift: $(if $(STAGE),stack) ## compare keys, messages, payments and the provider's objects on the running stack, or on a stage: [STAGE=prod] ARGS="--from …"
	@$(IDEMCTL) drift $(ARGS)

prove: ## explore the protocol exhaustively within small bounds, and show what each rule is for: [ONLY=wrapped for a part; LARGE=1 for larger bounds: 14 minutes and 8.5 GiB of memory on 2 cores]
	@go run -tags prove ./idem/protocol/check/cmd/prove $(if $(LARGE),-large) $(if $(ONLY),-run "$(ONLY)")

soak: STEPS := $(or $(STEPS),10000000)
soak: DEEP := $(or $(DEEP),8)
soak: LARGE := 1
soak: $(if $(ONLY),,simulate) prove ## stories of ten million calls, and then the protocol within large bounds, as make prove LARGE=1 has them; ONLY=wrapped for a part of the latter

simulate: ## play stories of the real code in simulated time, and cut off every call: [STEPS=1000000 SEED=7 DEEP=2]; prints the seed
	@seed=$(or $(SEED),$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')); echo "SEED=$$seed"; \
	{ GOGC=400 go test ./idem/sim -count=1 -timeout 12h -v -run '^(TestStories|TestEveryKindSurvivesACutAtEveryCallAndThenAnother)$$' \
		-sim.seed $$seed -sim.steps $(or $(STEPS),1000000) -sim.deep $(or $(DEEP),2) && \
	GOGC=400 go test ./functions/internal/payments -count=1 -timeout 12h -v -run '^TestSimulatedStories$$' \
		-sim.seed $$seed -sim.steps $$(($(or $(STEPS),1000000) / 5)); echo "exit $$?"; } | \
	awk '/^exit / { exit $$2 } !/^=== |^    --- PASS/'

planted: ## remove each rule from the real code, and look for a story that notices: [FROM=7 WITHIN=1000000]: the first story's seed, and how many steps a rule may take; writes how many it took into idem/sim/testdata/planted.txt
	@GOGC=400 go test -tags prove ./idem/sim -count=1 -timeout 12h -v -run '^TestPlantedRulesAreFound$$' -sim.search . \
		-sim.from $(or $(FROM),0) -sim.within $(or $(WITHIN),1000000)

alike: tools ## give DynamoDB's store and the reference store the same generated commands, and compare answers, rows and queues: [FROM=7 STORIES=25]
	@go test ./idem/dynamo -count=1 -timeout 12h -v -run '^TestAnswersAsTheReferenceStoreDoes$$' -alike.from $(or $(FROM),0) -alike.stories $(or $(STORIES),25)

mutants: tools ## change the code on purpose, one place at a time, and demand that a test fails: [ARGS="--only webhook", ARGS="--generate 200 --seed 7"]
	@go run ./localstack/cmd/mutants $(ARGS)

bench: ## costs by path of a request, start times of the functions
	@go run ./bench/cost && go run ./bench/start

capacity: ## what a rate of payments needs on AWS: shards, concurrency, quotas, dollars: RATE=10000 (default 1000) [ARGS="--outbox sqs --output json"]
	@go run ./bench/capacity --rate="$(or $(RATE),1000)" $(ARGS)

dynamodb: stack ## start an emulator of DynamoDB with idem's tables, the quota's, keys' and audit log's too, and your own, until Ctrl-C: [PREFIX=shop TABLES=shop-orders,shop-accounts]; variables in .local/dynamodb.env
	@$(STACK) dynamodb --prefix "$(or $(PREFIX),shop)" $(if $(TABLES),--table "$(TABLES)")

docs: stack ## build the documentation site into .local/site and check it
	@$(STACK) docs

docs-serve: stack ## show the documentation site on 127.0.0.1, built again when a page changes (Ctrl-C ends it)
	@$(STACK) docs --serve

fmt: ## format the Go code
	@go fmt work

bootstrap: stack ## prepare a stage's account and Region for deployments, once: STAGE=prod (infra/stages/prod.json)
	@$(STACK) bootstrap --stage "$(STAGE)"

deploy: stack ## deploy a stage to AWS with your credentials: STAGE=prod; variables in .local/prod.env; [NOW=1 moves all calls at once, and no alarm ends it]
	@$(STACK) deploy --stage "$(STAGE)" $(if $(call said,NOW),--now)

diff: stack ## show what deploying a stage would change: STAGE=prod
	@$(STACK) diff --stage "$(STAGE)"

destroy: stack ## remove a stage's stack from AWS: STAGE=prod; refused while it is protected from termination
	@$(STACK) destroy --stage "$(STAGE)"

release-check: stack ## install this checkout as an adopter would if it were released, and compare two builds of idemctl: minutes
	@$(STACK) release-check

release: stack ## check a release, and make its commit and tags; pushes nothing: VERSION=v0.1.0
	@$(STACK) release --version "$(VERSION)"

release-binaries: stack ## build what is attached to a release, on its tag, into .local/release: VERSION=v0.1.0
	@$(STACK) release-binaries --version "$(VERSION)"

release-clients: stack ## build the packages of the TypeScript and the Python client into .local/release/clients
	@$(STACK) release-clients

stack:
	@command -v go >/dev/null || { echo "Go 1.26 or newer is needed (not found): https://go.dev/dl"; exit 1; }
	@go build -o $(STACK) ./localstack/cmd/stack
