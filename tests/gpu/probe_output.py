"""What a probe writes: one line for each observation, which findings.py reads."""

import json


def say(item, value, unit=""):
    value = round(value, 4) if isinstance(value, float) else value
    print(json.dumps({"item": item, "value": value, "unit": unit}), flush=True)
