"""Sequence numbers as a GPU's threads count them. On the CPU one counter gives all of them; what
was made while autograd's engine ran would have been made, and numbered from 0, on autograd's
thread."""


class SequenceNumbers:

    def __init__(self, events):
        # Of each time that the engine ran: the counter before and after.
        self.runs = []
        depth = 0
        for event in events:
            if event[0] != "!" or not event[2].startswith("engine "):
                continue
            counter = int(event[2].split()[-1])
            if event[2].startswith("engine end"):
                depth -= 1
                if depth == 0:
                    self.runs[-1][1] = counter
            else:
                if depth == 0:
                    self.runs.append([counter, counter])
                depth += 1

    def of_node(self, number):
        """Of a node, on the thread that made it."""
        before = 0  # made by the engine
        for first, last in self.runs:
            if number < first:
                break
            if number < last:
                return before + number - first
            before += last - first
        return number - before

    def shown_by_operator(self, number, run):
        """Of an operator: the number that the next node of its thread will get. `run` counts the
        engine's runs from 0; None outside of them."""
        if run is None:
            return number - sum(min(last, number) - first for first, last in self.runs
                                if first < number)
        made = sum(last - first for first, last in self.runs[:run])
        return made + number - self.runs[run][0]
