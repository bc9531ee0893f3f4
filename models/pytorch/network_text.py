"""Passes that were watched become the lines of a network file (its form: README.md beside it)."""

import torch

import calls
from calls import Count, formula
from watch import Result, Store, Unsupported

NAMES = {dtype: name for dtype, name in calls.NAMES.items() if name != "bool"}  # the plan's


def sized(nbytes, dtype):
    """[count, dtype]; what the plan has no name for is so many bytes."""
    return [Count(nbytes // dtype.itemsize), NAMES[dtype]] if dtype in NAMES else [Count(nbytes), "uint8"]


# ---- a pass ----------------------------------------------------------------------------------------

class Pass:
    def __init__(self, watch, declared, inputs):
        self.watch = watch
        self.n_values = 0
        self.value_of_output = {}  # (sequence, output) -> value
        self.value_of_parameter = {}
        self.store_of_output = {}
        known = [watch.store_of(t) for t in declared]
        hidden = [s for _, s in watch.stores.values() if s.what == "standing" and s not in known and s not in inputs]
        self.hidden = [s for s in hidden if s.nbytes]
        for store in (*known, *self.hidden, *inputs):
            store.value = self._new_value()
        for tensor in declared:
            if isinstance(tensor, torch.nn.Parameter):
                self.value_of_parameter[id(tensor)] = watch.store_of(tensor).value

    def _new_value(self):
        self.n_values += 1
        return self.n_values - 1

    def value_of(self, key):
        if key[0] == "node" and (key[1], key[2]) in self.value_of_output:
            return self.value_of_output[key[1], key[2]]
        if key[-1].value is None:
            raise Unsupported("a tensor comes into the network in a way that was not watched")
        return key[-1].value

    def value_of_edge(self, edge):
        if edge is None:
            return "-"  # or it was given nothing
        if edge[0] == "parameter":
            if id(edge[1]) not in self.value_of_parameter:
                raise Unsupported(f"forward asks for the gradient of a tensor {tuple(edge[1].shape)} that is no parameter of the "
                                  "network (requires_grad = True), and no file says where that is kept; take it out, or freeze "
                                  "what asks for it")
            return self.value_of_parameter[id(edge[1])]
        return self.value_of_output[edge[1], edge[2]]

    def value_of_target(self, target):
        return self.value_of_parameter[target[1]] if target[0] == "parameter" else self.value_of_output[target[1], target[2]]

    def attach(self, op):
        """The op's node, where backward comes to it; and what of its results are whose outputs."""
        if op.node is None:
            return
        results = iter(op.results)
        op.outputs = []
        for i, (numel, _) in enumerate(op.node.shapes):
            result = next((r for r in results if r.numel == numel), None)
            if result is None:
                raise Unsupported(f"{op.node.name} has outputs that the call of {op.name} has not")
            result.wants_gradient = True
            op.outputs.append(result)

    def make_outputs(self, op):
        """Of a node of Python's own: parts of what its function left."""
        for i, (numel, dtype) in enumerate(op.node.shapes):
            store = self.watch.outputs.get((op.sequence, i))
            if store is None:
                raise Unsupported(f"nobody uses output {i} of {op.node.name}")
            result = Result.__new__(Result)
            result.store, result.is_new, result.numel, result.dtype, result.wants_gradient = store, False, numel, dtype, True
            op.results.append(result)

    def lines_of_op(self, op):
        """[kind's lines, the op's own line]"""
        node = op.node
        taken = [e if flow else None for e, flow in zip(node.edges, node.flow)] if node else []
        edges = [self.value_of_edge(e) for e in taken]
        inputs, of_store = list(edges), {}
        for position, edge in enumerate(taken):
            if edge is not None:
                of_store.setdefault(id(self._store_of_edge(edge)), f"i{position}")
        fresh = {}
        for i, result in enumerate(op.results):
            if result.is_new and id(result.store) not in fresh:
                fresh[id(result.store)] = f"o{i}"

        def ref(store):
            if id(store) in fresh:
                return fresh[id(store)]
            if id(store) not in of_store:
                if store.value is None:
                    raise Unsupported(f"{op.name} takes a tensor that was not watched")
                of_store[id(store)] = f"i{len(inputs)}"
                inputs.append(store.value)
            return of_store[id(store)]

        reads, writes = [ref(s) for s in op.reads], [ref(s) for s in op.writes] + list(fresh.values())
        body = []
        for i, result in enumerate(op.results):
            source = ref(result.store)
            is_made = source == f"o{i}"
            logical = sized(result.numel * result.dtype.itemsize, result.dtype)
            stored = sized(result.store.nbytes, result.dtype) if is_made else logical
            body.append(["out", "new" if is_made else source, *stored, "grad" if result.wants_gradient else "plain",
                         *(logical[:1] if stored != logical else [])])
        saves = [ref(s) for s in self.watch.saves.get(op.sequence, [])] if node else []
        body += [["save", *saves]] if saves else []
        body += run_lines(op.kernels, reads, writes, named(op.call, ref))
        if node:
            body += [["backward"]] + backward_lines(node)
        name = node.name if op.name == "node" else op.name
        head = ["kind", name, str(len(edges)), str(len(inputs)), str(len(op.results))]
        values = []
        for i, result in enumerate(op.results):
            value = self._new_value()
            values.append(value)
            if fresh.get(id(result.store)) == f"o{i}":
                result.store.value = value
        if node:
            for i, result in enumerate(op.outputs):
                self.value_of_output[op.sequence, i] = values[op.results.index(result)]
        return [head, *body], [str(v) for v in inputs]

    def _store_of_edge(self, edge):
        if edge[0] == "parameter":
            return self.watch.store_of(edge[1])
        return self.store_of_output[edge[1], edge[2]]


def named(call, name_of):
    """The words of a call whose stores have names."""
    return [tuple(name_of(p) if isinstance(p, Store) else p for p in word) if isinstance(word, tuple) else word
            for word in call or []]


def run_lines(kernels, reads, writes, call):
    """The kernels of one call, of which the last computes."""
    lines = []
    for i, kernel in enumerate(kernels):
        lines += [kernel_line(kernel, reads, writes), ["call", *(call if i + 1 == len(kernels) else ["-"])]]
    return lines


def kernel_line(kernel, reads, writes):
    return ["run", kernel[0], *(Count(max(1, n) if i != 6 and i != 7 else n) for i, n in enumerate(kernel[1:])),
            "<", *reads, ">", *writes]


def _words(refs):
    return [kind + str(index) for kind, index in (r for r in refs if r is not None) if kind != "standing"]


def backward_lines(node):
    lines = []
    for event in node.events:
        if event[0] == "alloc":
            nbytes, dtype = node.scratch[event[1]]
            lines.append(["alloc", *sized(nbytes, dtype)])
        elif event[0] == "run":
            lines += run_lines(event[1], _words(event[2]), _words(event[3]), event[4])
        elif event[0] == "free":
            lines.append(["free", f"t{event[1]}"])
        elif event[0] == "drop":
            lines.append(["drop", f"s{event[1]}"])
        else:
            lines.append(["return"])
    lines.append(["give", *("-" if f is None else f[0] + str(f[1]) for f in node.flow)])
    return lines


def lines_of_pass(watch, declared, loss, inputs):
    """{"inputs", "ops": [(kind's lines, words)], "steps": lines, "loss"}"""
    made = Pass(watch, declared, inputs)
    ops, steps = [], []
    for entry in watch.stream:
        what = entry[0]
        if what == "op":
            op = entry[1]
            op.node = watch.nodes.get(op.sequence) if op.sequence is not None else None
            op.node = op.node if op.node and op.node.flow else None  # backward comes to it
            if op.name == "node" and op.node is None:
                continue
            if op.name == "node":
                made.make_outputs(op)
                op.outputs = list(op.results)
            elif op.node is not None and op.node.is_python:
                raise Unsupported(f"{op.node.name} stands where {op.name} was expected; file a report with the network")
            else:
                made.attach(op)
            if op.node is not None:
                for i, result in enumerate(op.outputs):
                    made.store_of_output[op.sequence, i] = result.store
            if not op.node and not op.kernels and not any(r.is_new for r in op.results):
                continue  # a view that autograd does not see
            kind, words = made.lines_of_op(op)
            ops.append(kind)
            steps.append(["op", len(ops) - 1, *words])
        elif what == "let":
            if entry[1].value is not None:
                steps.append(["let", str(entry[1].value)])
        elif what == "casts":
            steps.append(["casts"])
        elif what == "return":
            steps.append(["return", str(entry[1])])
        else:
            values = [made.value_of(k) for k in entry[2]]
            if any(declared[v].requires_grad for v in values if v < len(declared)):
                raise Unsupported("a module is given a parameter, or returns one, as it is, which FSDP's hooks do not expect; "
                                  "let whoever uses it reach for it, or return a view of it")
            steps.append([what, str(entry[1]), *map(str, values)])
    steps.append(["end"])
    loss_store = loss[-1]
    steps += [["let", str(s.value)] for s in watch.late if s is not loss_store and s.value is not None]
    copied = [["copied", str(made.value_of_parameter[id(p)]), *call] for p, call in watch.copied.items()]
    sums = [["sum", str(made.value_of_target(target)), *call] for target, more in watch.sums.items() for call in more]
    lines = {"copied": sorted(copied, key=lambda line: int(line[1])), "sums": sorted(sums, key=lambda line: int(line[1])),
             "inputs": [], "ops": ops, "steps": steps, "loss": str(made.value_of(loss)), "hidden": [s.nbytes for s in made.hidden]}
    for store in inputs:
        lines["inputs"].append(["input", *store.words, *([str(store.bound)] if store.bound else [])])
    return lines


# ---- passes together -------------------------------------------------------------------------------

CALLS = {"call": 1, "copied": 2, "sum": 2}  # lines that hold one, from a word on


def _merged(passes):
    """The same lines of several passes as text; None where they are not the same."""
    texts = []
    for lines in zip(*passes.values(), strict=False):
        words = []
        first = CALLS.get(lines[0][0])
        if first is None and len({len(line) for line in lines}) > 1:
            return None
        for together in zip(*(line[:first] for line in lines)):
            if isinstance(together[0], Count):
                word = formula(dict(zip(passes, together)))
            else:
                word = str(together[0]) if len(set(map(str, together))) == 1 else None
            if word is None:
                return None
            words.append(word)
        if first is not None:
            words.append(calls.merged({n: line[first:] for n, line in zip(passes, lines)}))
        texts.append(" ".join(words))
    return texts


def _flat(lines):
    sizes = [str(len(lines[what])) for what in ("ops", "steps", "inputs", "copied", "sums")]
    return ([["sizes", *sizes, lines["loss"]]] + lines["copied"] + lines["inputs"]
            + [line for kind in lines["ops"] for line in [["op-begins"], *kind]] + [["steps"]] + lines["steps"] + lines["sums"])


def body_of(passes):
    """The text of passes that are one program, or None."""
    flat = {n: _flat(lines) for n, lines in passes.items()}
    if len({len(lines) for lines in flat.values()}) > 1:
        return None
    texts = _merged(flat)
    if texts is None:
        return None
    lines = next(iter(passes.values()))
    at = 1 + len(lines["copied"]) + len(lines["inputs"])
    inputs, kinds, of_op = texts[1:at], {}, []
    for kind in lines["ops"]:
        text = "\n".join(texts[at + 1:at + 1 + len(kind)])
        of_op.append(kinds.setdefault(text, len(kinds)))
        at += 1 + len(kind)
    steps = []
    for text in texts[at + 1:]:
        words = text.split(" ")
        if words[0] == "op":
            words[1] = str(of_op[int(words[1])])
        steps.append(" ".join(words))
    return "\n".join([*inputs, *kinds, "forward", *steps, f"loss {lines['loss']}"])


HEAD = """traced-network 1
# {title}traced by models/pytorch/trace.py. Counts grow with the n samples of a pass.
pytorch {pytorch}
dtype {dtype}{casts}
tokens {tokens}
"""


def text_of(network, declared, made, passes, blocks, tokens, title, casts_blocks):
    ids = {id(m): i for i, m in enumerate(network.modules())}
    parents, names = {}, {}
    for name, module in network.named_modules():
        parent, _, local = name.rpartition(".")
        names[id(module)] = local
        parents[id(module)] = ids[id(network.get_submodule(parent))] if name else None
    is_block = {id(m) for m in blocks}
    lines = []
    for module in network.modules():
        parent = parents[id(module)]
        lines.append(["module", "-" if parent is None else str(parent), names[id(module)] or "-", type(module).__name__]
                     + ["block"] * (id(module) in is_block))
    owners = {}
    for module in network.modules():
        for local, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is not None:
                owners.setdefault(id(tensor), (ids[id(module)], local))
    for tensor in declared:
        module, local = owners[id(tensor)]
        if isinstance(tensor, torch.nn.Parameter):
            lines.append(["parameter", str(module), local, "x".join(str(d) for d in tensor.shape) or "1"]
                         + ["frozen"] * (not tensor.requires_grad))
        else:
            lines.append(["buffer", *map(str, sized(tensor.untyped_storage().nbytes(), tensor.dtype)), str(module), local])
    hidden = {tuple(lines_["hidden"]) for lines_ in passes.values()}
    if len(hidden) > 1:
        raise Unsupported("what the network keeps between passes hangs on how many samples it saw; let it keep nothing")
    lines += [["kept", str(nbytes), "uint8"] for nbytes in hidden.pop()]
    if made != sorted(made):
        lines.append(["made", *made])
    dtypes = {p.dtype for p in network.parameters()}
    if len(dtypes) > 1 or not dtypes <= set(NAMES):
        raise Unsupported("its parameters are of several dtypes, or of one that no plan knows; make them all of one")
    head = HEAD.format(title=title and title + ", ", pytorch=torch.__version__.split("+")[0], dtype=NAMES[dtypes.pop()],
                       casts=" blocks" * casts_blocks, tokens=tokens or 1)
    bodies = []

    def body(first, last, some):
        text = body_of(some)
        if text is None:
            return False
        bodies.append(f"trace {first} {last}\n{text}\n")
        return True

    if not body(min(passes), "-", passes):
        more = {n: lines_ for n, lines_ in passes.items() if n > 1}
        if not body(1, 1, {1: passes[1]}) or not body(min(more), "-", more):
            raise Unsupported("what it does does not grow evenly with the samples; foreshard takes no such network (does its "
                              "batch mix samples, or does it choose by their number?)")
    return head + "\n".join(" ".join(map(str, line)) for line in lines) + "\n" + "".join(bodies)
