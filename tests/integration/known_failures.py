"""What is known to fail: a list that only gets shorter. A test that is on it and passes fails, so
that it is taken off."""


class KnownFailures:
    def __init__(self, reasons):
        self.reasons = reasons

    def __contains__(self, name):
        return name in self.reasons

    def check(self, test, name, run):
        """Runs `run`, which raises where the product fails. A name on the list has to fail."""
        try:
            run()
        except AssertionError as failure:
            if name not in self.reasons:
                raise
            return str(failure)
        if name in self.reasons:
            test.fail(f"{name} passes: take it off the list of known failures "
                      f"({self.reasons[name]})")
        return None
