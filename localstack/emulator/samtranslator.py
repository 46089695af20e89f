# Reads a SAM template as JSON and writes the CloudFormation template that AWS makes of it. Its managed policies are not asked for:
# a template that names one is refused.
import json
import sys

from samtranslator.translator.transform import transform


class NoManagedPolicies:
    def load(self):
        return {}


json.dump(transform(json.load(sys.stdin), {}, NoManagedPolicies()), sys.stdout)
