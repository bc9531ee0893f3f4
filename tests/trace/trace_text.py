"""tests/trace/trace_text.py - a trace read again, from the description in trace/README.md alone."""


class Trace:
    """header: a dict; tables: lists of names; roles: lists of instructions (dicts); ops and memory:
    lists of dicts with absolute times and sizes."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            self.lines = iter(file.read().split('\n'))
        assert next(self.lines) == 'foreshard-trace 2'
        self.header = {}
        words = next(self.lines).split(' ')
        while words[0] != 'tables':
            self.header[words[0]] = ' '.join(words[1:])
            words = next(self.lines).split(' ')
        counts = dict(zip(words[1::2], map(int, words[2::2])))
        self.lanes = self._names('lane', counts['lanes'])
        self.units = self._names('unit', counts['units'])
        self.phases = self._names('phase', counts['phases'])
        self.categories = self._names('category', counts['categories'])
        self.modules = self._names('module', counts['modules'])
        self.kinds = [name.split(' ', 1) for name in self._names('kind', counts['kinds'])]
        self.roles = [self._role() for _ in range(counts['roles'])]
        self.ranks = {}
        for _ in range(counts['ranks']):
            _, rank, role = next(self.lines).split(' ')
            self.ranks[int(rank)] = int(role)
        self.ops, self.memory = [], []
        self._rows()

    def _names(self, word, count):
        lines = [next(self.lines) for _ in range(count)]
        assert all(line.startswith(word + ' ') for line in lines)
        return [line[len(word) + 1:] for line in lines]

    def _role(self):
        count = int(next(self.lines).split(' ')[2])
        instructions = []
        while len(instructions) < count:
            _, section, length = next(self.lines).split(' ')
            for _ in range(int(length)):
                what, lane, phase, unit, module, *rest = next(self.lines).split(' ')
                instructions.append({
                    'what': what, 'section': section, 'lane': int(lane),
                    'phase': self.phases[int(phase)],
                    'unit': None if unit == '-' else self.units[int(unit)],
                    'rest': [int(word) for word in rest]})
        return instructions

    def _rows(self):
        for line in self.lines:
            word, rank, step, *count = line.split(' ')
            if word == 'end':
                return
            issue = start = reserved = 0
            for _ in range(int(count[0])):
                row = [int(cell) for cell in next(self.lines).split(' ')]
                instruction = self.roles[self.ranks[int(rank)]][row[0]]
                entry = {'rank': int(rank), 'step': int(step), 'number': row[0],
                         'instruction': instruction}
                if word == 'ops':
                    issue += row[2]
                    start = issue + row[3]
                    entry.update(lane=row[1], issue=issue, start=start, end=start + row[4])
                    self.ops.append(entry)
                else:
                    issue += row[1]
                    reserved += row[6]
                    entry.update(at=issue, category=self.categories[row[2]], delta=row[3],
                                 allocated=row[4], active=row[4] + row[5], reserved=reserved)
                    self.memory.append(entry)
