"""tests/style/tap.py - the few lines of TAP that the style tests print."""
import sys


class Tap:
    """Numbers the cases, and prints the plan at the end."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def case(self, name, complaints):
        """Passes if complaints, a list of lines, is empty."""
        self.count += 1
        if complaints:
            self.failed += 1
        print(('not ok ' if complaints else 'ok ') + str(self.count) + ' ' + name)
        for complaint in complaints:
            print('# ' + complaint)
        sys.stdout.flush()

    def skip(self, name, why):
        self.count += 1
        print('ok ' + str(self.count) + ' ' + name + ' # SKIP ' + why)

    def finish(self):
        print('1..' + str(self.count))
        return 1 if self.failed else 0
