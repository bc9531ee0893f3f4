"""Watches one forward and backward pass on tensors without memory: what is allocated and let go of, when, by which node
of autograd, and what each node keeps.

Saved tensors are packed (torch.autograd.graph.saved_tensors_hooks), so that autograd holds none: a storage that dies in
forward was let go of by Python. Backward is given stand-ins of the same shape, whose death tells when a node's function
has done with them."""

import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.autograd.function import BackwardCFunction
from torch.utils._python_dispatch import TorchDispatchMode

from calls import NAMES, Shape, Unknown, words_of
from kernels import kernels_of, tensors_in

aten = torch.ops.aten

# The derivatives of x[index] and of topk write into the zeros that they make; for a tensor's subclass, as those without
# memory are, C++ takes functions that make a second tensor.
IN_PLACE = {aten.index_put.default: aten.index_put_.default, aten.scatter.src: aten.scatter_.src}
RANDOM_INTEGERS = {aten.randint.default: 0, aten.randint.low: 1}  # where their bound stands
ADDS_UP = (aten.add.Tensor,)  # the engine's, of a tensor that is used twice
COPIES = (aten.clone.default, aten.new_empty_strided.default, aten.copy_.default)


class Unsupported(Exception):
    """What a network does that a file cannot say, with a remedy."""


class Store:
    """A storage. what: standing (there before the pass), made (in forward), scratch (of a node in backward), saved (a
    stand-in for what a node keeps), sum (the engine's)."""

    def __init__(self, what, number, nbytes, node=None, index=None):
        self.what, self.number, self.nbytes, self.node, self.index = what, number, nbytes, node, index
        self.value = None
        self.bound = 0  # of the whole numbers in it; 0: not known


class Result:
    def __init__(self, store, tensor, is_new):
        self.store, self.is_new = store, is_new
        self.numel, self.dtype, self.wants_gradient = tensor.numel(), tensor.dtype, False


class Op:
    """A call that PyTorch made in forward, or a node of Python's own (autograd.Function) behind its calls."""

    def __init__(self, name, sequence):
        self.name, self.sequence = name, sequence
        self.reads, self.writes, self.results, self.kernels = [], [], [], []
        self.call = None   # words, of which stores are to be named
        self.node = None


class Node:
    """A node of autograd: edges, what it keeps, and what it does backward."""

    def __init__(self, function):
        self.name, self.sequence = function.name(), function._sequence_nr()
        self.is_python = isinstance(function, BackwardCFunction)
        self.edges = []    # None, ("parameter", tensor) or ("node", sequence, output)
        self.shapes = [(m.shape.numel() if hasattr(m.shape, "numel") else _numel(m.shape), m.dtype)
                       for m in function._input_metadata]
        self.events = []   # ("alloc", t), ("free", t), ("run", kernels, reads, writes, call), ("drop", saved), ("end",)
        self.scratch = []  # stores
        self.given = []    # stores of the gradients that it is given, or None
        self.flow = []     # by edge: None, or what flows on
        self.needs = []    # by edge: numel and dtype of what flows on now


def _numel(shape):
    n = 1
    for side in shape:
        n *= int(side)
    return n


class Packed:
    def __init__(self, tensor, store, sequence, index):
        self.size, self.stride, self.offset = tensor.size(), tensor.stride(), tensor.storage_offset()
        self.dtype, self.device, self.store = tensor.dtype, tensor.device, store
        self.sequence, self.index = sequence, index
        self.tensor = tensor if store.what == "standing" else None


class Watch(TorchDispatchMode):
    def __init__(self, device_type):
        super().__init__()
        self.device_type = device_type
        self.stores = {}     # address -> (weakref, Store)
        self.n_stores = 0
        self.phase = "setup"
        self.paused = False
        self.packing = False  # a tensor that a node keeps
        self.casts_blocks = False  # some are given what mixed precision casts
        self.known = None    # nodes that backward came to in the pass before, counted from its first; None: there was none
        self.begin_pass()

    def begin_pass(self):
        self.stream = []     # ("op", Op), ("enter" | "leave", module, tensors), ("return", module), ("let", Store)
        self.nodes = {}      # sequence -> Node
        self.saves = {}      # sequence -> [Store]
        self.outputs = {}    # (sequence, output) -> Store, as it was seen
        self.late = []       # made in forward, held beyond it
        self.copied = {}     # parameters whose gradients AccumulateGrad copies: the call
        self.sums = {}       # edge's target -> calls by which the engine adds up its gradients, in order
        self.handed = set()  # edges' targets that were given a gradient
        self.sums_due = []   # of the node that ran last: the targets whose gradients are added now
        self.node = None     # that runs in backward
        self.in_function = False
        self.copies = None
        self.around = None   # sequence of the node of a call in place that copied its tensor before, for backward
        self.first_sequence = self.next_sequence = torch._C._autograd._get_sequence_nr()

    # ---- storages ----------------------------------------------------------------------------------

    def store_of(self, tensor):
        return self.stores.get(tensor.untyped_storage()._cdata, (None, None))[1]

    def is_on_device(self, tensor):
        return tensor.device.type == self.device_type

    def watch(self, tensor, what, **more):
        storage = tensor.untyped_storage()
        address = storage._cdata
        store = Store(what, self.n_stores, storage.nbytes(), **more)
        self.n_stores += 1
        self.stores[address] = (weakref.ref(storage, lambda _: self._died(address)), store)
        return store

    def takes_place(self, new, old):
        """A tensor instead of another, as though it had been made when that was."""
        self.store_of(new).number = self.store_of(old).number

    def standing(self):
        """All that lives is there before the pass."""
        for _, store in self.stores.values():
            store.what = "standing"

    def _died(self, address):
        _, store = self.stores.pop(address)
        if store.what == "made":
            if self.phase == "forward":
                if not self.packing:  # else a node made for a call is due, which that call tells of
                    self.settle()
                self.stream.append(("let", store))
            else:
                self.late.append(store)
        elif store.what == "scratch" and store.node is self.node and not self._flows_on(store):
            self.node.events.append(("free", store.index))
        elif store.what == "saved" and store.node is self.node and self.in_function:
            self.node.events.append(("drop", store.index))

    def _flows_on(self, store):
        return any(flow == ("t", store.index) for flow in self.node.flow)

    # ---- calls -------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.paused or func is torch.ops.prim.device.default:
            return func(*args, **kwargs)
        if self.phase == "backward":
            func = IN_PLACE.get(func, func)
        if self.phase == "setup" and _is_of_host(args, kwargs):
            with unset_fake_temporarily():  # numbers that a network is made by, such as torch.linspace(..., device="cpu").tolist()
                return func(*args, **kwargs)
        sequence = self._own_node() if self.phase == "forward" else None
        result = func(*args, **kwargs)
        if self.phase == "forward":
            self._forward(func, args, kwargs, result, sequence)
        elif self.phase == "backward":
            self._backward(func, args, kwargs, result)
        else:
            for tensor in tensors_in(result):
                if self.is_on_device(tensor) and self.store_of(tensor) is None:
                    store = self.watch(tensor, "standing")
                    if func in RANDOM_INTEGERS:
                        store.bound = args[RANDOM_INTEGERS[func]]
        return result

    def _touched(self, func, args, kwargs):
        """Stores that are read, and those of them that are written in place."""
        read = [self.store_of(t) for t in tensors_in((args, kwargs)) if self.is_on_device(t)]
        named = dict(zip((a.name for a in func._schema.arguments), args)) | kwargs
        changed = [a.name for a in func._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
        written = [self.store_of(t) for name in changed for t in tensors_in(named.get(name))]
        return _once(read), _once(written)

    def _runs(self, func, is_new, written):
        name = func._schema.name
        return (is_new or written) and not name.startswith(("aten::empty", "aten::new_empty", "aten::set_"))

    def _named(self, tensor):
        """A tensor's store in a call's words. Of one of the host no file knows a number."""
        store = self.store_of(tensor) if self.is_on_device(tensor) else None
        if store is None:
            raise Unknown
        return store

    # ---- forward -----------------------------------------------------------------------------------

    def settle(self):
        """Nodes that were made by no call of their own: autograd.Function's. Also before Python lets go of something, which
        may be what such a function was given."""
        now = torch._C._autograd._get_sequence_nr()
        while self.next_sequence < now:
            self.stream.append(("op", Op("node", self.next_sequence)))
            self.next_sequence += 1

    def _own_node(self):
        """The sequence number of the node that was made for the call that is to come."""
        now = torch._C._autograd._get_sequence_nr()
        if not torch.is_grad_enabled() or now == self.next_sequence:
            around, self.around = self.around, None
            return around
        while self.next_sequence < now - 1:
            self.stream.append(("op", Op("node", self.next_sequence)))
            self.next_sequence += 1
        self.next_sequence = now
        return now - 1

    def key_of(self, tensor):
        """What a tensor is, until values have numbers."""
        store = self.store_of(tensor)
        function = tensor.grad_fn
        if function is not None:
            self.outputs[function._sequence_nr(), tensor.output_nr] = store
            return ("node", function._sequence_nr(), tensor.output_nr, store)
        return ("store", store)

    def _forward(self, func, args, kwargs, result, sequence):
        for tensor in tensors_in((args, kwargs)):
            if self.is_on_device(tensor):
                self.key_of(tensor)
        op = Op(func._schema.name.split("::")[1], sequence)
        op.reads, op.writes = self._touched(func, args, kwargs)
        for tensor in tensors_in(result):
            if not self.is_on_device(tensor):
                continue
            store = self.store_of(tensor)
            is_new = store is None
            op.results.append(Result(store or self.watch(tensor, "made"), tensor, is_new))
        is_new = any(r.is_new for r in op.results)
        if self._runs(func, is_new, op.writes):
            op.kernels = kernels_of(func, args, kwargs, result)
            op.call = words_of(func, args, kwargs, result, self._named)
        if is_new or op.kernels or sequence is not None:
            self.stream.append(("op", op))

    def _saving_node(self):
        """The sequence number of the node that saves a tensor: the last one, unless that is a clone's, which saves
        nothing. Then a call in place (x /= y) made its node first, and clones what it is to overwrite."""
        last = torch._C._autograd._get_sequence_nr() - 1
        what, op = self.stream[-1][:2] if self.stream else (None, None)
        if self.around is None and what == "op" and op.name == "clone" and op.sequence == last:
            self.stream.pop(-2)  # the node, which was taken for one of Python's own
            self.around = last - 1
        return last if self.around is None else self.around

    def pack(self, tensor):
        """Nothing in its place, but for nodes that backward does not come to: what those keep lives as long as they."""
        self.packing = True
        try:
            return self._packed(tensor)
        finally:
            self.packing = False

    def _packed(self, tensor):
        sequence = self._saving_node()
        store = self.store_of(tensor)
        if store is None:  # of the host
            return tensor
        if self.known is not None and sequence - self.first_sequence not in self.known:
            self.paused = True
            kept = tensor.detach()
            self.paused = False
            return kept
        saves = self.saves.setdefault(sequence, [])
        saves.append(store)
        return Packed(tensor, store, sequence, len(saves) - 1)

    def came_to(self):
        """Whether backward came to the nodes that were known; those are known now that it did come to."""
        before, self.known = self.known, {sequence - self.first_sequence for sequence in self.nodes}
        return self.known == before

    # ---- backward ----------------------------------------------------------------------------------

    def unpack(self, packed):
        if not isinstance(packed, Packed):
            return packed
        if packed.tensor is not None:
            return packed.tensor
        self.paused = True
        size = packed.store.nbytes // packed.dtype.itemsize
        whole = torch.empty(size, dtype=packed.dtype, device=packed.device)
        tensor = whole.as_strided(packed.size, packed.stride, packed.offset)
        self.watch(tensor, "saved", node=self.node, index=packed.index)
        self.paused = False
        return tensor

    def follow(self, loss):
        """Finds the nodes behind the loss and has each tell when it runs."""
        stack = [loss.grad_fn]
        while stack:
            function = stack.pop()
            sequence = function._sequence_nr()
            if sequence in self.nodes:
                continue
            node = self.nodes[sequence] = Node(function)
            for following, output in function.next_functions:
                if following is None:
                    node.edges.append(None)
                elif hasattr(following, "variable"):
                    node.edges.append(("parameter", following.variable))
                else:
                    node.edges.append(("node", following._sequence_nr(), output))
                    stack.append(following)
            node.targets = [None if f is None else _target(f, output) for f, output in function.next_functions]
            function.register_prehook(lambda gradients, node=node: self._starts(node, gradients))
            function.register_hook(lambda made, given, node=node: self._ends(node, made))

    def _starts(self, node, gradients):
        self.node, self.in_function = node, True
        self.sums_due = []
        node.given = [None if g is None else self.store_of(g) for g in gradients]

    def _ref(self, store):
        """A store in the words of the node that runs."""
        if store is None:
            return None
        if store.what == "saved" and store.node is self.node:
            return ("s", store.index)
        if store.what == "scratch" and store.node is self.node:
            return ("t", store.index)
        for i, given in enumerate(self.node.given):
            if given is store:
                return ("g", i)
        kept = self.saves.get(self.node.sequence, [])
        return ("s", kept.index(store)) if store in kept else ("standing", store)

    def _ends(self, node, made):
        for i, gradient in enumerate(made):
            edge = node.edges[i] if i < len(node.edges) else None
            ref = None if gradient is None or edge is None else self._ref(self.store_of(gradient))
            if ref is not None and ref[0] not in ("t", "g"):
                raise Unsupported(f"{node.name} hands on what it kept of forward as a gradient, which no file says; write "
                                  "that part of the network another way")
            node.flow.append(ref)
            node.needs.append(None if ref is None else (gradient.numel(), gradient.dtype))
        node.events.append(("end",))
        self.in_function = False
        for edge, ref in zip(node.edges, node.flow):
            if ref is not None:
                target = ("parameter", id(edge[1])) if edge[0] == "parameter" else edge
                if target in self.handed:
                    self.sums_due.append(target)
                self.handed.add(target)

    def _backward(self, func, args, kwargs, result):
        made = [t for t in tensors_in(result) if self.is_on_device(t)]
        fresh = [t for t in made if self.store_of(t) is None]
        if self.node is None or (not self.in_function and func in ADDS_UP + COPIES):
            for tensor in fresh:
                self.watch(tensor, "sum")
            self._engine_runs(func, args, kwargs, result, bool(fresh))
            return
        node = self.node
        read, written = self._touched(func, args, kwargs)
        reads = [self._ref(s) for s in read]
        writes = [self._ref(s) for s in written]
        for tensor in fresh:
            store = self.watch(tensor, "scratch", node=node, index=len(node.scratch))
            node.scratch.append((store.nbytes, tensor.dtype))
            node.events.append(("alloc", store.index))
            writes.append(("t", store.index))
        if self._runs(func, bool(fresh), written):
            node.events.append(("run", kernels_of(func, args, kwargs, result), reads, writes,
                                words_of(func, args, kwargs, result, self._referred)))
        if fresh and not self.in_function:
            self._engine_made(node, reads, made[0], writes[-1])

    def _referred(self, tensor):
        """A tensor's store in the words of the node that runs."""
        ref = self._ref(self._named(tensor))
        if ref[0] == "standing":
            raise Unknown
        return ref[0] + str(ref[1])

    def _engine_runs(self, func, args, kwargs, result, is_new):
        """Between nodes: the sum of a tensor's gradients, or the copy that becomes a parameter's."""
        if func in ADDS_UP and self.sums_due:
            names = {id(args[0]): "x0", id(args[1]): "x1", id(result): "y0"}
            call = words_of(func, args, kwargs, result, lambda t: names[id(t)])
            self.sums.setdefault(self.sums_due.pop(0), []).append(call)
        elif func in COPIES:
            source = args[1] if func is aten.copy_.default else args[0]
            if func is not aten.new_empty_strided.default and (is_new or self.copies):
                self.copies = ["clone", ("x0", *_words_of_shape(source)), ">", ("y0", *_words_of_shape(result))]
            self.copies = self.copies or (["?clone"] if is_new else None)

    def _engine_made(self, node, reads, tensor, ref):
        """A gradient was summed or cast to what its tensor is."""
        for i, flow in enumerate(node.flow):
            if flow in reads and node.needs[i] != node.targets[i] and node.targets[i][0] == tensor.numel():
                node.flow[i], node.needs[i] = ref, (tensor.numel(), tensor.dtype)
                return
        raise Unsupported(f"behind {node.name} the engine makes {tuple(tensor.shape)} of nothing that is known")

    def has_gradient(self, parameter):
        if self.copies:
            self.copied[parameter] = self.copies
        self.copies = None


def _is_of_host(args, kwargs):
    """Whether a call makes or takes tensors of the host alone, that do have memory."""
    tensors = list(tensors_in((args, kwargs)))
    device = kwargs.get("device")
    if device is None and not tensors:
        return False
    return (device is None or torch.device(device).type == "cpu") and \
        all(t.device.type == "cpu" and not isinstance(t, FakeTensor) for t in tensors)


def _once(stores):
    return list({id(s): s for s in stores if s is not None}.values())


def _words_of_shape(tensor):
    return "/" + NAMES[tensor.dtype] + "/", Shape(tensor)


def _target(function, output):
    if hasattr(function, "variable"):
        return (function.variable.numel(), function.variable.dtype)
    of = function._input_metadata[output]
    return (_numel(of.shape), of.dtype)
