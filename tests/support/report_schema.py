"""Reports as JSON against the schema that flopreduce prints, which is checked once."""

import functools
import json
import subprocess

import jsonschema


@functools.cache
def _validator(flopreduce):
    schema = json.loads(subprocess.run([flopreduce, "schema"], capture_output=True, check=True,
                                       timeout=60).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def validate(flopreduce, report):
    """A jsonschema.ValidationError where it does not fit."""
    _validator(flopreduce).validate(report)
