package stack_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem-aws/infra/stack"
)

// outbound are the functions that call the provider. The others call AWS's services only, and stay outside.
var outbound = []string{"ApiFunction", "DriftFunction", "ReconcileFunction", "SweepFunction", "WorkerFunction"}

// networked are the functions of a template that are in a network, with their subnets and groups.
func (s *synthesized) networked() map[string]string {
	found := map[string]string{}
	for name, function := range s.of("AWS::Lambda::Function") {
		if within, ok := function.Properties["VpcConfig"].(map[string]any); ok {
			found[name] = plainList(within["SubnetIds"]) + " " + plainList(within["SecurityGroupIds"])
		}
	}
	return found
}

func plainList(values any) string {
	var all []string
	for _, each := range list(values) {
		all = append(all, plain(each))
	}
	return strings.Join(all, ",")
}

func TestFunctionsThatCallTheProviderAreInTheNetwork(t *testing.T) {
	each(t, func(t *testing.T, variant string, template *synthesized) {
		var want []string
		if chosen(variant, "privateNetwork") {
			want = outbound
		}
		in := template.networked()
		if got := slices.Sorted(maps.Keys(in)); !slices.Equal(got, want) {
			t.Errorf("in the network: %v, want %v", got, want)
		}
		for name, where := range in {
			if where != "NetworkPrivateFirst,NetworkPrivateSecond NetworkFunctions.GroupId" {
				t.Errorf("%s is in %s", name, where)
			}
			// A version that is called before its way out is there would fail.
			if after := template.dependencies(t, name); !slices.Contains(after, "NetworkPrivateOutFirst") || !slices.Contains(after, "NetworkPrivateOutSecond") {
				t.Errorf("%s comes after %v", name, after)
			}
		}
	})
}

// What leaves a zone leaves by an address of its own, which stays when the stack goes, and is an output.
func TestCallsLeaveByFixedAddresses(t *testing.T) {
	template := synthesize(t, "rest-gateway")
	for _, zone := range []string{"First", "Second"} {
		subnets, routes, nats, addresses := template.of("AWS::EC2::Subnet"), template.of("AWS::EC2::Route"), template.of("AWS::EC2::NatGateway"), template.of("AWS::EC2::EIP")
		tables := map[string]string{}
		for _, association := range template.of("AWS::EC2::SubnetRouteTableAssociation") {
			tables[plain(association.Properties["SubnetId"])] = plain(association.Properties["RouteTableId"])
		}
		private, public := routes["NetworkPrivateOut"+zone].Properties, routes["NetworkPublicOut"+zone].Properties
		if plain(private["RouteTableId"]) != tables["NetworkPrivate"+zone] || plain(private["NatGatewayId"]) != "NetworkNat"+zone || private["DestinationCidrBlock"] != "0.0.0.0/0" {
			t.Errorf("zone %s: %v leaves by %v", zone, tables["NetworkPrivate"+zone], private)
		}
		if plain(public["RouteTableId"]) != tables["NetworkPublic"+zone] || plain(public["GatewayId"]) != "NetworkInternet" {
			t.Errorf("zone %s: the public subnet leaves by %v", zone, public)
		}
		nat := nats["NetworkNat"+zone].Properties
		if plain(nat["SubnetId"]) != "NetworkPublic"+zone || plain(nat["AllocationId"]) != "NetworkAddress"+zone+".AllocationId" {
			t.Errorf("zone %s: %v", zone, nat)
		}
		if kept := addresses["NetworkAddress"+zone]; kept.DeletionPolicy != "RetainExceptOnCreate" || kept.UpdateReplacePolicy != "Retain" {
			t.Errorf("zone %s: the address is %s, %s", zone, kept.DeletionPolicy, kept.UpdateReplacePolicy)
		}
		for _, id := range []string{"NetworkPrivate", "NetworkPublic"} {
			if subnet := subnets[id+zone].Properties; subnet["MapPublicIpOnLaunch"] != false || !strings.HasPrefix(plain(subnet["AvailabilityZone"]), "map[Fn::Select:[") {
				t.Errorf("%s%s: %v", id, zone, subnet)
			}
		}
	}
	if got := plain(template.Outputs["EgressAddresses"].Value); got != "NetworkAddressFirstNetworkAddressSecond" {
		t.Errorf("output: %s", got)
	}
}

// Nobody calls the functions; they call https and the ports of provider and collector. Endpoints are called by them, and call nobody.
func TestSecurityGroupsLetThroughTheLeast(t *testing.T) {
	template := synthesize(t, "rest-gateway")
	groups := template.of("AWS::EC2::SecurityGroup")
	functions, endpoints := groups["NetworkFunctions"].Properties, groups["NetworkEndpoints"].Properties
	if functions["SecurityGroupIngress"] != nil || len(groups) != 2 {
		t.Errorf("%v may be called", functions)
	}
	ports := func(template *synthesized) (open []string) {
		for _, rule := range template.of("AWS::EC2::SecurityGroup")["NetworkFunctions"].Properties["SecurityGroupEgress"].([]any) {
			rule := rule.(map[string]any)
			open = append(open, fmt.Sprintf("%v %v-%v %v", rule["IpProtocol"], rule["FromPort"], rule["ToPort"], rule["CidrIp"]))
		}
		return open
	}
	if got := ports(template); !slices.Equal(got, []string{"tcp 443-443 0.0.0.0/0"}) { // its collector is on localhost
		t.Errorf("functions may call %v", got)
	}
	other := synthesizeContext(t, production(map[string]any{"privateNetwork": "on", "otlpEndpoint": "http://collector.example:4318"}), buildFolder(t))
	if got := ports(other); !slices.Equal(got, []string{"tcp 443-443 0.0.0.0/0", "tcp 4318-4318 0.0.0.0/0"}) {
		t.Errorf("functions with a collector may call %v", got)
	}
	in := endpoints["SecurityGroupIngress"].([]any)
	if rule := in[0].(map[string]any); len(in) != 1 || rule["FromPort"] != 443.0 || rule["ToPort"] != 443.0 || plain(rule["SourceSecurityGroupId"]) != "NetworkFunctions.GroupId" {
		t.Errorf("endpoints are called by %v", in)
	}
	if out := endpoints["SecurityGroupEgress"].([]any); len(out) != 1 || out[0].(map[string]any)["CidrIp"] != "255.255.255.255/32" {
		t.Errorf("endpoints call %v", out)
	}
}

// An endpoint lets through exactly what the roles of the functions in the network may do with its service.
func TestEndpointsPassWhatTheRolesMay(t *testing.T) {
	template := synthesize(t, "rest-gateway")
	may := granted(t, template)
	endpoints := template.of("AWS::EC2::VPCEndpoint")
	if len(endpoints) != 4 {
		t.Errorf("%d endpoints", len(endpoints))
	}
	for id, service := range map[string]string{"NetworkDynamodb": "dynamodb", "NetworkSqs": "sqs", "NetworkSecrets": "secretsmanager", "NetworkKms": "kms"} {
		endpoint := endpoints[id].Properties
		if endpoint["ServiceName"] != "com.amazonaws.eu-central-1."+service {
			t.Errorf("%s: %v", id, endpoint["ServiceName"])
		}
		if inside := endpoint["VpcEndpointType"] == "Interface"; inside != (service != "dynamodb") || inside != (endpoint["PrivateDnsEnabled"] == true) ||
			!inside && plainList(endpoint["RouteTableIds"]) != "NetworkPrivateRoutesFirst,NetworkPrivateRoutesSecond" {
			t.Errorf("%s: %v", id, endpoint)
		}
		passed, allowed := map[string]bool{}, map[string]bool{}
		for _, statement := range endpoint["PolicyDocument"].(map[string]any)["Statement"].([]any) {
			statement := statement.(map[string]any)
			if fmt.Sprint(statement["Principal"]) != "map[AWS:*]" || statement["Effect"] != "Allow" ||
				fmt.Sprint(statement["Condition"]) != "map[StringEquals:map[aws:PrincipalAccount:111122223333]]" {
				t.Errorf("%s: %v", id, statement)
			}
			addPairs(passed, statement)
		}
		for _, function := range outbound {
			for _, sentence := range may[strings.TrimSuffix(function, "Function")] {
				actions, on, _ := strings.Cut(sentence, " on ")
				for _, action := range strings.Fields(actions) {
					if strings.HasPrefix(action, service+":") {
						allowed[action+" on "+on] = true
					}
				}
			}
		}
		if len(passed) == 0 || !maps.Equal(passed, allowed) {
			t.Errorf("%s lets through\n%v\nand the roles may\n%v", id, slices.Sorted(maps.Keys(passed)), slices.Sorted(maps.Keys(allowed)))
		}
	}
}

// addPairs adds each action of a statement with each resource.
func addPairs(pairs map[string]bool, statement map[string]any) {
	for _, action := range list(statement["Action"]) {
		for _, on := range list(statement["Resource"]) {
			pairs[fmt.Sprint(action, " on ", plain(on))] = true
		}
	}
}

// In a network that is there the stack puts its functions, and makes nothing.
func TestNetworksThatAreThere(t *testing.T) {
	build := buildFolder(t)
	imported := synthesizeContext(t, production(map[string]any{"privateNetwork": map[string]any{
		"subnets": "subnet-0123456789abcdef0,subnet-0123456789abcdef1", "securityGroups": "sg-0123456789abcdef0",
	}}), build)
	in := imported.networked()
	if got := slices.Sorted(maps.Keys(in)); !slices.Equal(got, outbound) || in["ApiFunction"] != "subnet-0123456789abcdef0,subnet-0123456789abcdef1 sg-0123456789abcdef0" {
		t.Errorf("in the network: %v", in)
	}
	for id, r := range imported.Resources {
		if strings.HasPrefix(r.Type, "AWS::EC2::") {
			t.Errorf("%s is made", id)
		}
	}
	if imported.Outputs["EgressAddresses"].Value != nil {
		t.Error("addresses that are not known are an output")
	}
	// Addresses that are there are used, and not made.
	kept := synthesizeContext(t, production(map[string]any{"privateNetwork": `{"addresses": "eipalloc-0123456789abcdef0,eipalloc-0123456789abcdef1"}`}), build)
	kept.counts(t, "AWS::EC2::EIP", 0)
	kept.has(t, "AWS::EC2::NatGateway", map[string]any{"AllocationId": "eipalloc-0123456789abcdef1"})
	// Its settings are a part of a version: a function that moves into a network is deployed as a new one is.
	outside, moved := synthesizeContext(t, production(nil), build), 0
	for id, r := range outside.Resources {
		if _, same := imported.Resources[id]; r.Type == "AWS::Lambda::Version" && !same {
			moved++
		}
	}
	if moved != len(outbound) {
		t.Errorf("%d functions have a new version", moved)
	}
}

func TestReadPrivateNetwork(t *testing.T) {
	for want, given := range map[stack.Network]any{
		{}: "off", {Made: true}: "on",
		{Made: true, Addresses: "eipalloc-01234567,eipalloc-89abcdef"}: `{"addresses": "eipalloc-01234567,eipalloc-89abcdef"}`,
		{Subnets: "subnet-01234567,subnet-89abcdef", SecurityGroups: "sg-0123456789abcdef0"}: map[string]any{
			"subnets": "subnet-01234567,subnet-89abcdef", "securityGroups": "sg-0123456789abcdef0",
		},
	} {
		if got, err := read(production(map[string]any{"privateNetwork": given}), nil); err != nil || got.Network != want {
			t.Errorf("%v: %+v, %v", given, got.Network, err)
		}
	}
	for want, given := range map[string]any{
		`context privateNetwork="true" is refused; allowed: off, on, {`:                                         true,
		`context privateNetwork="yes" is refused; allowed: off, on, {`:                                          "yes",
		`context privateNetwork="{}" is refused`:                                                                "{}",
		`context privateNetwork.vpc="vpc-1" is refused`:                                                         `{"vpc": "vpc-1"}`,
		`context privateNetwork.subnets="subnet-01234567" is refused; allowed: the ids of 2 to 6`:               `{"subnets": "subnet-01234567", "securityGroups": "sg-01234567"}`,
		`context privateNetwork="{\"subnets\": \"subnet-01234567,subnet-89abcdef\"}" is refused`:                `{"subnets": "subnet-01234567,subnet-89abcdef"}`,
		`context privateNetwork.addresses="eipalloc-01234567" is refused; allowed: the allocation ids of two`:   `{"addresses": "eipalloc-01234567"}`,
		`privateNetwork.addresses="eipalloc-01234567,eipalloc-01234567" is refused; allowed: two different one`: `{"addresses": "eipalloc-01234567,eipalloc-01234567"}`,
	} {
		if _, err := read(production(map[string]any{"privateNetwork": given}), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want\n%s", given, err, want)
		}
	}
	local := map[string]any{"providerUrl": "http://127.0.0.1:9000", "local": true, "alarmTopic": "none", "privateNetwork": "on"}
	if _, err := read(local, nil); err == nil || !strings.Contains(err.Error(), `context privateNetwork="on" is refused; allowed: off, with local=true`) {
		t.Errorf("with local: %v", err)
	}
}
