// Prints, for each template, what two rule packs of cdk-nag 3 find and the template does not acknowledge, as lines of
// JSON. cdk-nag 3 takes acknowledgements from code only: those in the metadata of resources are handed over here.
const { App, CfnResource, Stack, Validations } = require('aws-cdk-lib');
const { CfnInclude } = require('aws-cdk-lib/cloudformation-include');
const { AwsSolutionsChecks, NIST80053R5Checks } = require('cdk-nag');

for (const templateFile of process.argv.slice(2)) {
  const stack = new Stack(new App(), 'Stack');
  new CfnInclude(stack, 'Template', { templateFile });
  for (const resource of stack.node.findAll().filter(CfnResource.isCfnResource)) {
    const { rules_to_suppress: rules = [] } = resource.getMetadata('cdk_nag') ?? {};
    for (const { id, reason, applies_to: findings } of rules) {
      const ids = findings ? findings.map((finding) => `${id}[${finding}]`) : [id];
      for (const each of ids) Validations.of(resource).acknowledge({ id: each, reason });
    }
  }
  for (const pack of [new AwsSolutionsChecks(), new NIST80053R5Checks()])
    for (const { ruleName, violatingResources } of pack.validateScope(stack).violations)
      for (const { constructPath } of violatingResources)
        console.log(JSON.stringify([templateFile, ruleName, constructPath.split('/').pop()]));
}
