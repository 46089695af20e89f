package check

// DynamoVariables are the environment of a program that uses the DynamoDB endpoint of a test.
func DynamoVariables(url string) []string {
	return []string{
		"AWS_ENDPOINT_URL_DYNAMODB=" + url, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_EC2_METADATA_DISABLED=true",
	}
}
