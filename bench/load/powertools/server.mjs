// A service on Powertools for AWS Lambda (TypeScript) that answers the requests of bench/load: one business row for each new
// key. It prints its port once it listens, and ends with its standard input.
import { createServer } from 'node:http';
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { DynamoDBPersistenceLayer } from '@aws-lambda-powertools/idempotency/dynamodb';

const { DYNAMODB_URL, RECORDS_TABLE, ROWS_TABLE, ANSWER } = process.env;

const client = new DynamoDBClient({
  endpoint: DYNAMODB_URL,
  region: 'us-east-1',
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
});

// As on Lambda with 28 s left: without a context Powertools writes no time at which an execution may be taken over.
const config = new IdempotencyConfig({
  eventKeyJmesPath: 'key',
  payloadValidationJmesPath: 'body',
  expiresAfterSeconds: 24 * 60 * 60,
  lambdaContext: { getRemainingTimeInMillis: () => 28_000 },
});

const pay = makeIdempotent(
  async ({ key }) => {
    await client.send(
      new PutItemCommand({
        TableName: ROWS_TABLE,
        Item: { pk: { S: key }, st: { S: 'pending' } },
        ConditionExpression: 'attribute_not_exists(pk)',
      })
    );
    return { status: 201, body: ANSWER };
  },
  {
    persistenceStore: new DynamoDBPersistenceLayer({ tableName: RECORDS_TABLE, awsSdkV3Client: client }),
    config,
  }
);

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) {
    body += chunk;
  }
  try {
    const answer = await pay({ key: request.headers['x-key'], body });
    response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(answer.body);
  } catch (error) {
    response.writeHead(500, { 'Content-Type': 'application/json' }).end(JSON.stringify({ code: error.name, detail: error.message }));
  }
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume().on('end', () => process.exit(0));
