package stack

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/idem-go/idem-aws/infra/idemconstruct"
	"github.com/idem-go/idem-aws/infra/lint"
)

// Network is where the functions run that call the provider. The zero value is outside any network of the account's, with addresses of
// AWS's. Lists are separated by commas.
type Network struct {
	// Made has the stack make a VPC whose calls leave by two Elastic IPs. Addresses are the allocation ids of two that are there
	// already; empty, the stack makes them.
	Made      bool
	Addresses string
	// Subnets and SecurityGroups are those of a VPC that is there already, which the stack changes nothing of.
	Subnets, SecurityGroups string
}

const networkForm = `off, on, {"addresses": "eipalloc-…,eipalloc-…"}, or {"subnets": "subnet-…,subnet-…", "securityGroups": "sg-…"}`

var (
	addressesForm = form{regexp.MustCompile(`^(eipalloc-[0-9a-f]{8,17},eipalloc-[0-9a-f]{8,17})?$`), "the allocation ids of two Elastic IPs, one for each Availability Zone, separated by a comma"}
	subnetsForm   = form{regexp.MustCompile(`^(subnet-[0-9a-f]{8,17}(,subnet-[0-9a-f]{8,17}){1,5})?$`), "the ids of 2 to 6 private subnets, separated by commas"}
	groupsForm    = form{regexp.MustCompile(`^(sg-[0-9a-f]{8,17}(,sg-[0-9a-f]{8,17}){0,4})?$`), "the ids of 1 to 5 security groups, separated by commas"}
)

// readNetwork reads the context privateNetwork: a word, a map of cdk.json or of a stage's file, or its JSON from the command line.
func (r *reader) readNetwork(config *Config) {
	const key = "privateNetwork"
	given := r.lookup(key)
	text, isText := given.(string)
	switch {
	case given == nil, isText && text == "off":
		return
	case config.Local:
		r.refuse(key, fmt.Sprint(given), "off, with local=true: emulators run functions as processes of this machine")
		return
	case isText && text == "on":
		config.Network = Network{Made: true}
		return
	}
	names, err := textsOf(given)
	if err != nil || len(names) == 0 {
		r.refuse(key, fmt.Sprint(given), networkForm)
		return
	}
	n := &config.Network
	for name, member := range map[string]struct {
		value *string
		form  form
	}{"addresses": {&n.Addresses, addressesForm}, "subnets": {&n.Subnets, subnetsForm}, "securityGroups": {&n.SecurityGroups, groupsForm}} {
		*member.value = names[name]
		if delete(names, name); !member.form.pattern.MatchString(*member.value) {
			r.refuse(key+"."+name, *member.value, member.form.allowed)
		}
	}
	for _, unknown := range slices.Sorted(maps.Keys(names)) {
		r.refuse(key+"."+unknown, names[unknown], networkForm)
	}
	n.Made = n.Addresses != ""
	if n.Made == (n.Subnets != "") || (n.Subnets == "") != (n.SecurityGroups == "") {
		r.refuse(key, fmt.Sprint(given), networkForm)
	}
	if first, second, _ := strings.Cut(n.Addresses, ","); n.Made && first == second {
		r.refuse(key+".addresses", n.Addresses, "two different ones")
	}
}

// textsOf reads texts by name.
func textsOf(given any) (texts map[string]string, err error) {
	text, isText := given.(string)
	if !isText {
		encoded, err := json.Marshal(given)
		if err != nil {
			return nil, err
		}
		text = string(encoded)
	}
	return texts, json.Unmarshal([]byte(text), &texts)
}

// The addresses of the VPC that the stack makes: nothing outside of it has to know them. Lambda takes an address of a subnet for
// thousands of connections, not for each execution.
const (
	networkRange = "10.0.0.0/20"
	zones        = 2
)

func publicRange(zone int) string  { return fmt.Sprintf("10.0.%d.0/24", zone) }
func privateRange(zone int) string { return fmt.Sprintf("10.0.%d.0/24", 8+zone) }

// network is what a function is put into; nil is no network.
type network struct {
	config          Config
	self            constructs.Construct
	subnets, groups []*string
	// Of a network that the stack makes: the VPC, the route tables and the ways out of the private subnets, and the functions' group.
	vpc         awsec2.CfnVPC
	routeTables []*string
	waysOut     []awscdk.CfnResource
	// used are the statements of the functions in it.
	used []awsiam.PolicyStatement
}

// newNetwork makes or imports the network that config describes.
func newNetwork(stack awscdk.Stack, config Config) *network {
	if config.Network == (Network{}) {
		return nil
	}
	n := &network{config: config}
	if !config.Network.Made {
		n.subnets, n.groups = *jsii.Strings(strings.Split(config.Network.Subnets, ",")...), *jsii.Strings(strings.Split(config.Network.SecurityGroups, ",")...)
		return n
	}
	n.self = constructs.NewConstruct(stack, jsii.String("Network"))
	n.vpc = awsec2.NewCfnVPC(n.self, jsii.String("Vpc"), &awsec2.CfnVPCProps{
		CidrBlock: jsii.String(networkRange), EnableDnsHostnames: jsii.Bool(true), EnableDnsSupport: jsii.Bool(true), Tags: n.named("vpc"),
	})
	n.logRefused()
	n.addZones(stack)
	group := n.securityGroup("Functions", "The functions that call the provider")
	group.SetSecurityGroupEgress(n.egress())
	n.groups = []*string{group.AttrGroupId()}
	return n
}

// named is the name that the console shows: network resources have no other.
func (n *network) named(name string) *[]*awscdk.CfnTag {
	return &[]*awscdk.CfnTag{{Key: jsii.String("Name"), Value: jsii.String(n.config.Stack + "-" + name)}}
}

// addZones makes a public and a private subnet in each of two Availability Zones. What leaves the private one goes by a NAT gateway of
// its own zone and that one's address, so that a zone that fails takes no other along.
func (n *network) addZones(stack awscdk.Stack) {
	internet := awsec2.NewCfnInternetGateway(n.self, jsii.String("Internet"), &awsec2.CfnInternetGatewayProps{Tags: n.named("internet")})
	attached := awsec2.NewCfnVPCGatewayAttachment(n.self, jsii.String("InternetAttachment"), &awsec2.CfnVPCGatewayAttachmentProps{
		VpcId: n.vpc.Ref(), InternetGatewayId: internet.Ref(),
	})
	var addresses []*string
	for zone := range zones {
		public, publicTable := n.subnet("Public", zone, publicRange(zone))
		n.route("Public", zone, publicTable, &awsec2.CfnRouteProps{GatewayId: internet.Ref()}).AddResourceDependency(attached, nil)
		allocation, address := n.address(zone)
		if address != nil {
			address.AddResourceDependency(attached, nil)
			addresses = append(addresses, address.Ref())
		}
		nat := awsec2.NewCfnNatGateway(n.self, zoned("Nat", zone), &awsec2.CfnNatGatewayProps{AllocationId: allocation, SubnetId: public.Ref(), Tags: n.named("nat")})
		private, privateTable := n.subnet("Private", zone, privateRange(zone))
		n.waysOut = append(n.waysOut, n.route("Private", zone, privateTable, &awsec2.CfnRouteProps{NatGatewayId: nat.Ref()}))
		n.subnets, n.routeTables = append(n.subnets, private.Ref()), append(n.routeTables, privateTable)
	}
	if addresses != nil {
		output(stack, "EgressAddresses", awscdk.Fn_Join(jsii.String(","), &addresses))
	}
}

func zoned(id string, zone int) *string {
	return jsii.String(id + [zones]string{"First", "Second"}[zone])
}

// address is the allocation of an Elastic IP, and the resource where the stack makes it. It stays when the stack or the network goes:
// the provider knows it, and it would be somebody else's. That of a deployment that fails goes with it: nobody knows it, and it is billed.
func (n *network) address(zone int) (allocation any, made awsec2.CfnEIP) {
	if n.config.Network.Addresses != "" {
		return jsii.String(strings.Split(n.config.Network.Addresses, ",")[zone]), nil
	}
	made = awsec2.NewCfnEIP(n.self, zoned("Address", zone), &awsec2.CfnEIPProps{Domain: jsii.String("vpc"), Tags: n.named("egress")})
	made.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE, nil)
	return made.AttrAllocationId(), made
}

// subnet makes a subnet with a route table of its own, and returns that one's id.
func (n *network) subnet(id string, zone int, addresses string) (subnet awsec2.CfnSubnet, routeTable *string) {
	subnet = awsec2.NewCfnSubnet(n.self, zoned(id, zone), &awsec2.CfnSubnetProps{
		VpcId: n.vpc.Ref(), CidrBlock: jsii.String(addresses), MapPublicIpOnLaunch: jsii.Bool(false), Tags: n.named(strings.ToLower(id)),
		AvailabilityZone: awscdk.Fn_Select(jsii.Number(zone), awscdk.Fn_GetAzs(nil)),
	})
	table := awsec2.NewCfnRouteTable(n.self, zoned(id+"Routes", zone), &awsec2.CfnRouteTableProps{VpcId: n.vpc.Ref(), Tags: n.named(strings.ToLower(id))})
	awsec2.NewCfnSubnetRouteTableAssociation(n.self, zoned(id+"Association", zone), &awsec2.CfnSubnetRouteTableAssociationProps{
		SubnetId: subnet.Ref(), RouteTableId: table.Ref(),
	})
	return subnet, table.Ref()
}

func (n *network) route(id string, zone int, table *string, way *awsec2.CfnRouteProps) awsec2.CfnRoute {
	way.RouteTableId, way.DestinationCidrBlock = table, jsii.String("0.0.0.0/0")
	return awsec2.NewCfnRoute(n.self, zoned(id+"Out", zone), way)
}

func (n *network) securityGroup(id, description string) awsec2.CfnSecurityGroup {
	return awsec2.NewCfnSecurityGroup(n.self, jsii.String(id), &awsec2.CfnSecurityGroupProps{
		VpcId: n.vpc.Ref(), GroupDescription: jsii.String(description), Tags: n.named(strings.ToLower(id)),
	})
}

// egress lets the functions call https, and the ports of provider and collector. Nobody calls them. Addresses are not bound: a
// provider is a name, and DynamoDB's addresses are many.
func (n *network) egress() []any {
	ports := []int{443}
	for _, address := range []string{n.config.ProviderURL, n.config.OTLPEndpoint} {
		if port := portOf(address); port != 0 {
			ports = append(ports, port)
		}
	}
	slices.Sort(ports)
	var rules []any
	for _, port := range slices.Compact(ports) {
		rules = append(rules, &awsec2.CfnSecurityGroup_EgressProperty{
			CidrIp: jsii.String("0.0.0.0/0"), IpProtocol: jsii.String("tcp"), FromPort: jsii.Number(port), ToPort: jsii.Number(port),
			Description: jsii.String(fmt.Sprintf("TCP %d", port)),
		})
	}
	return rules
}

// portOf is the port of an address on another machine; 0 where there is none.
func portOf(address string) int {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Hostname() == "localhost" || strings.HasPrefix(parsed.Hostname(), "127.") {
		return 0
	}
	if port, err := strconv.Atoi(parsed.Port()); err == nil {
		return port
	}
	return map[string]int{"http": 80, "https": 443}[parsed.Scheme]
}

// logRefused keeps what the security groups refuse: with least egress, a call that nobody meant.
func (n *network) logRefused() {
	logs := awslogs.NewLogGroup(n.self, jsii.String("RefusedLogs"), logGroup(n.config))
	role := awsiam.NewRole(n.self, jsii.String("RefusedRole"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("vpc-flow-logs.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"refused": awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{
			Statements: &[]awsiam.PolicyStatement{
				idemconstruct.Allow([]string{"logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"}, logs.LogGroupArn()),
			},
		})},
	})
	awsec2.NewCfnFlowLog(n.self, jsii.String("Refused"), &awsec2.CfnFlowLogProps{
		ResourceId: n.vpc.Ref(), ResourceType: jsii.String("VPC"), TrafficType: jsii.String("REJECT"),
		LogDestinationType: jsii.String("cloud-watch-logs"), LogGroupName: logs.LogGroupName(), DeliverLogsPermissionArn: role.RoleArn(), Tags: n.named("refused"),
	})
}

// interfaces is what Lambda does in a function's role to connect it. EC2 knows no resource for some of it; the condition leaves
// it to Lambda, and to no code of a function.
func (n *network) interfaces() awsiam.PolicyStatement {
	statement := idemconstruct.Allow([]string{
		"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces",
		"ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
	}, jsii.String("*"))
	statement.AddCondition(jsii.String("Null"), map[string]any{"lambda:SourceFunctionArn": "true"})
	return statement
}

// connect puts a function into the network, whose ways out must be there before its new version is called.
func (n *network) connect(made awslambda.Function, statements []awsiam.PolicyStatement) {
	function := made.Node().DefaultChild().(awslambda.CfnFunction)
	function.SetVpcConfig(&awslambda.CfnFunction_VpcConfigProperty{SubnetIds: &n.subnets, SecurityGroupIds: &n.groups})
	for _, way := range n.waysOut {
		function.AddResourceDependency(way, nil)
	}
	n.used = append(n.used, statements...)
}

// addEndpoints lets the functions reach AWS's services without the NAT gateways. Each endpoint lets through what the functions' roles
// may do with its service, for callers of this account, and nothing else. A function's log needs none: Lambda writes it.
func (n *network) addEndpoints() {
	if n == nil || n.vpc == nil {
		return
	}
	awsec2.NewCfnVPCEndpoint(n.self, jsii.String("Dynamodb"), &awsec2.CfnVPCEndpointProps{
		VpcId: n.vpc.Ref(), ServiceName: n.service("dynamodb"), VpcEndpointType: jsii.String("Gateway"),
		RouteTableIds: anys(n.routeTables), PolicyDocument: n.passing("dynamodb"),
	})
	group := n.securityGroup("Endpoints", "The endpoints of AWS services")
	group.SetSecurityGroupIngress([]any{&awsec2.CfnSecurityGroup_IngressProperty{
		SourceSecurityGroupId: n.groups[0], IpProtocol: jsii.String("tcp"), FromPort: jsii.Number(443), ToPort: jsii.Number(443), Description: jsii.String("The functions"),
	}})
	// No rule at all would be AWS's default, which is everything.
	group.SetSecurityGroupEgress([]any{&awsec2.CfnSecurityGroup_EgressProperty{
		CidrIp: jsii.String("255.255.255.255/32"), IpProtocol: jsii.String("icmp"), FromPort: jsii.Number(252), ToPort: jsii.Number(86), Description: jsii.String("Nothing"),
	}})
	for _, each := range [][2]string{{"Sqs", "sqs"}, {"Secrets", "secretsmanager"}, {"Kms", "kms"}} {
		id, service := each[0], each[1]
		policy := n.passing(service)
		if policy == nil {
			continue
		}
		awsec2.NewCfnVPCEndpoint(n.self, jsii.String(id), &awsec2.CfnVPCEndpointProps{
			VpcId: n.vpc.Ref(), ServiceName: n.service(service), VpcEndpointType: jsii.String("Interface"), PrivateDnsEnabled: jsii.Bool(true),
			SubnetIds: anys(n.subnets), SecurityGroupIds: &[]any{group.AttrGroupId()}, PolicyDocument: policy,
		})
	}
}

func (n *network) service(name string) *string {
	return jsii.String("com.amazonaws." + n.config.Region + "." + name)
}

func anys(texts []*string) *[]any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return &all
}

// passing is the policy of the endpoint of a service; nil where no function uses it.
func (n *network) passing(service string) awsiam.PolicyDocument {
	var statements []awsiam.PolicyStatement
	for _, each := range n.used {
		if !strings.HasPrefix(*(*each.Actions())[0], service+":") {
			continue
		}
		passed := each.Copy(&awsiam.PolicyStatementProps{Principals: &[]awsiam.IPrincipal{awsiam.NewAnyPrincipal()}})
		passed.AddCondition(jsii.String("StringEquals"), map[string]any{"aws:PrincipalAccount": n.config.Account})
		statements = append(statements, passed)
	}
	if statements == nil {
		return nil
	}
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &statements})
}

// acceptNetwork says why the role of a function in a network may do something with all network interfaces.
func acceptNetwork(role awsiam.Role) {
	const reason = "Network interfaces have no names before they are made; only Lambda may, no code of a function."
	lint.Accept(role, map[string]string{"AwsSolutions-IAM5[Resource::*]": reason, "Serverless-LambdaStarPermissions": reason})
}
