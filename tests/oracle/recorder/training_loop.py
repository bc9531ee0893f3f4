"""What variables of a training loop hold of a pass.

`logits, loss = model(x, y)` in a function that runs one pass holds the logits until backward is through. In a script without
functions the variable lives on, and lets go of what it had when the next forward has given it another."""

import program_network
import transformers_network
from building_blocks import loss_of

HELD = ("no", "backward", "next-forward")


class Loop:
    def __init__(self):
        self.variable = None  # one that lives on

    def gives(self, results, shape):
        if shape.logits_held == "next-forward":
            self.variable = results
        return results if shape.logits_held != "no" else None

    def forward(self, model, batch, shape, options):
        """The loss, and what a variable of the pass holds beside it."""
        if options.program:
            return program_network.loss_of(options, model, batch), None
        if options.transformers:
            outputs = transformers_network.outputs_of(model, *batch)
            return outputs["loss"], self.gives(outputs, shape)
        if shape.use_cache:
            results, keys = model(*batch)
            if shape.logits_held == "no":
                return results, None
            logits, loss = results
            return loss, self.gives({"logits": logits, "keys": keys}, shape)
        if shape.loss_at == "loop":
            logits = model(*batch)
            held = self.gives(logits, shape)
            return loss_of(logits, batch[1], shape), held
        if shape.logits_held == "no":
            return model(*batch), None
        logits, loss = model(*batch)
        return loss, self.gives(logits, shape)
