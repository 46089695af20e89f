// Package faultproxy stands between a program and DynamoDB and loses, delays and refuses what the network, or DynamoDB
// itself, could lose, delay and refuse. It gives lost replies and kill points without hooks in the program. The package
// belongs to this repository's tools and has no compatibility promise.
//
//	proxy, err := faultproxy.New(faultproxy.Config{Target: "http://127.0.0.1:8000"})
//	server := httptest.NewServer(proxy)
//	defer server.Close() // waits for requests, so the proxy has to let go of them first
//	defer proxy.Close()
//	control := faultproxy.Control{URL: server.URL}
//	err = control.Faults(ctx, faultproxy.Rule{Operation: "TransactWriteItems", Fault: faultproxy.DropReply, Times: 1})
//
// The program's AWS_ENDPOINT_URL_DYNAMODB is the proxy's address. localstack/cmd/faultproxy runs it as a process. Its
// control endpoints lie below /control/, where DynamoDB (POST /) has nothing:
//
//	curl -X PUT  $PROXY/control/faults -d '{"rules":[{"operation":"UpdateItem","fault":"drop_reply","times":1}]}'
//	curl         $PROXY/control/faults     rules, and how often each applied
//	curl         $PROXY/control/counts     requests, and how often each fault was injected
//	curl         $PROXY/control/log        requests seen, oldest first
//	curl -X DELETE $PROXY/control/log      forgets them
//	curl         $PROXY/control/writes     what was written to rows since the proxy started; no reset clears it
//	curl         $PROXY/control/waiting    {"paused":1,"delayed":0,"late":0}
//	curl -X POST $PROXY/control/release    lets go of what is paused, and of what is late without a delay
//	curl -X POST $PROXY/control/down       closes every connection without forwarding, until
//	curl -X POST $PROXY/control/up
//	curl -X POST $PROXY/control/reset      no rules, counts and log, up; what waits is thrown away
//
// A rule with a chance makes weather for a whole suite of tests, and one with further steps says what a client meets that
// sends the same again:
//
//	{"operation":"TransactWriteItems","fault":"conflict","item":-1,"chance":0.2,"seed":7}
//	{"operation":"TransactWriteItems","fault":"drop_reply","then":[{"fault":"throttle"},{"fault":"in_progress"}]}
//
// What the proxy says in DynamoDB's name has the shape that package internal/refusal gives it, as have the answers of
// idem/dynamo/dynamotest/wirefault.
//
// A request goes on as it came, but for Partial, whose shorter body is signed anew, by an emulator's root user: method, path, headers with
// Host, and the bytes of the body; so does the answer. What the
// proxy has accepted it delivers even when the client has gone, as a network does, and it never sends a request twice.
package faultproxy
