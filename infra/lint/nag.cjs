// Holds CloudFormation templates against rules of cdk-nag, and prints every finding as JSON, one array for all templates.
// Suppressions are not applied: package lint judges the findings. Usage: node nag.cjs <folder of cdk-nag> <template>…
const { createRequire } = require('node:module');
const path = require('node:path');

const [folder, ...templates] = process.argv.slice(2);
const load = createRequire(path.join(folder, 'package.json'));
const { App, Stack } = load('aws-cdk-lib');
const { CfnInclude } = load('aws-cdk-lib/cloudformation-include');
const packs = load('cdk-nag');

const findings = [];
for (const template of templates) {
  const app = new App();
  new CfnInclude(new Stack(app, 'Stack'), 'Template', { templateFile: template });
  for (const Pack of [packs.AwsSolutionsChecks, packs.ServerlessChecks]) {
    for (const violation of new Pack(app, { verbose: true }).validateScope(app).violations) {
      for (const resource of violation.violatingResources) {
        findings.push({
          template,
          rule: violation.ruleName,
          resource: resource.constructPath.split('/').pop(),
          text: violation.description,
        });
      }
    }
  }
}
console.log(JSON.stringify(findings));
