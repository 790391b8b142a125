"""The programs whose streams are recorded. Each is a function of a Recorder; its docstring says
what is particular."""

import contextlib
import sys
from pathlib import Path

import networks
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def checkpointed(recorder, module, reentrant, **options):
    """The module's forward under torch.utils.checkpoint."""
    inner = recorder.forward(module.forward)
    module.forward = lambda *a: checkpoint(inner, *a, use_reentrant=reentrant, **options)


def train(recorder, model, loss, inputs, steps=1, optimizer=None, autocast=False, micro_batches=1,
          inputs_by_name=None, watched=True):
    """Plain training: no range but PyTorch's own. `inputs` are the model's; `loss` is a function
    of what it gives. A model that is not watched has its forward pass marked inside."""
    if watched:
        recorder.watch(model)
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    cast = torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext()
    with recorder.recording():
        for _ in range(steps):
            optimizer.zero_grad()
            for _ in range(micro_batches):
                with cast:
                    out = model(*inputs, **(inputs_by_name or {}))
                    with recorder.phase("loss"):
                        value = loss(out)
                value.backward()
            optimizer.step()


def classes(batch, number):
    return torch.arange(batch) % number


# --- networks: each in fp32 and under autocast, plain and checkpointed


def variants(name, make):
    """`make()` gives (model, loss, inputs, modules to checkpoint)."""
    def run(recorder, autocast, checkpointing):
        model, loss, inputs, parts = make()
        if checkpointing:
            for part in parts:
                checkpointed(recorder, part, reentrant=checkpointing == "reentrant")
        train(recorder, model, loss, inputs, autocast=autocast)

    for autocast in (False, True):
        for checkpointing in (None, "checkpoint"):
            title = "-".join([name] + ["autocast"] * autocast +
                             [checkpointing] * bool(checkpointing))
            PROGRAMS[title] = lambda recorder, a=autocast, c=checkpointing: run(recorder, a, c)


for _name, _make in networks.NETWORKS.items():
    variants(_name, _make)

# --- ways to train


def small(width=8, classes_=10):
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                         nn.MaxPool2d(2),
                         nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
                         nn.BatchNorm2d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(2 * width, classes_))


def perceptron():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                         nn.Linear(64, 10))


def cross_entropy(number=10):
    return lambda out: functional.cross_entropy(out, classes(len(out), number))


IMAGES = (4, 3, 16, 16)


@program
def cnn(recorder):
    train(recorder, small(), cross_entropy(), [torch.randn(IMAGES)], steps=2)


@program
def cnn_autocast(recorder):
    train(recorder, small(), cross_entropy(), [torch.randn(IMAGES)], autocast=True)


@program
def cnn_micro_batches(recorder):
    train(recorder, small(), cross_entropy(), [torch.randn(IMAGES)], micro_batches=3)


@program
def cnn_channels_last(recorder):
    train(recorder,
          small().to(memory_format=torch.channels_last), cross_entropy(),
          [torch.randn(IMAGES).to(memory_format=torch.channels_last)])


@program
def cnn_frozen(recorder):
    """The first convolution and its norm are frozen."""
    model = small()
    for parameter in [*model[0].parameters(), *model[1].parameters()]:
        parameter.requires_grad_(False)
    train(recorder, model, cross_entropy(), [torch.randn(IMAGES)])


class Normalising(nn.Module):
    """What is done to images before the first layer, which needs no gradient."""
    def __init__(self, model, as_bytes):
        super().__init__()
        self.model, self.as_bytes = model, as_bytes

    def forward(self, images):
        images = images.float() if self.as_bytes else (images - 0.45) / 0.22
        return self.model(images)


@program
def cnn_normalised(recorder):
    train(recorder, Normalising(small(), False), cross_entropy(), [torch.rand(IMAGES)])


@program
def cnn_uint8(recorder):
    train(recorder, Normalising(small(), True), cross_entropy(),
          [torch.randint(0, 255, IMAGES, dtype=torch.uint8)])


@program
def cnn_same_padding(recorder):
    """Even kernels with padding="same" are padded by an operator of their own."""
    model = nn.Sequential(nn.Conv2d(3, 6, 4, padding="same"), nn.ReLU(),
                          nn.Conv2d(6, 6, 4, padding="same", groups=3), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(6, 10))
    train(recorder, model, cross_entropy(), [torch.randn(IMAGES)])


@program
def cnn_unbatched(recorder):
    """One image without a batch dimension."""
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 8, 3, stride=2), nn.ReLU())
    train(recorder, model, lambda out: out.square().mean(), [torch.randn(IMAGES[1:])])


@program
def cnn_twins(recorder):
    """Two convolutions alike but for their stride, in the first layer."""
    class Twins(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(3, 8, 3, stride=2, padding=1)
            self.head = nn.Linear(8, 10)

        def forward(self, x):
            return self.head(self.a(x).relu().mean((2, 3)) + self.b(x).relu().mean((2, 3)))

    train(recorder, Twins(), cross_entropy(), [torch.randn(IMAGES)])


@program
def cnn_user_ranges(recorder):
    """torch.cuda.nvtx ranges by hand."""
    model, loss = recorder.watch(small()), cross_entropy()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    images = torch.randn(IMAGES)
    with recorder.recording():
        for _ in range(2):
            with torch.cuda.nvtx.range("step"):
                optimizer.zero_grad()
                with torch.cuda.nvtx.range("forward"):
                    out = model(images)
                with torch.cuda.nvtx.range("loss"), recorder.phase("loss"):
                    value = loss(out)
                with torch.cuda.nvtx.range("backward"):
                    value.backward()
                with torch.cuda.nvtx.range("optimizer"):
                    optimizer.step()


@program
def mlp(recorder):
    train(recorder, perceptron(), cross_entropy(), [torch.randn(16, 32)], steps=2)


@program
def mlp_adam_foreach(recorder):
    model = perceptron()
    train(recorder, model, cross_entropy(), [torch.randn(16, 32)], steps=2,
          optimizer=torch.optim.Adam(model.parameters(), foreach=True))


@program
def mlp_adamw_fused(recorder):
    model = perceptron()
    train(recorder, model, cross_entropy(), [torch.randn(16, 32)], steps=2,
          optimizer=torch.optim.AdamW(model.parameters(), fused=True))


def with_closure(recorder, optimizer_of, model=None, x=None):
    model, loss = recorder.watch(model or perceptron()), cross_entropy()
    x = torch.randn(16, 32) if x is None else x
    optimizer = optimizer_of(model)
    with recorder.recording():

        def closure():
            optimizer.zero_grad()
            out = model(x)
            with recorder.phase("loss"):
                value = loss(out)
            value.backward()
            return value

        for _ in range(2):
            optimizer.step(closure)


@program
def mlp_closure(recorder):
    """optimizer.step(closure): forward and backward run inside Optimizer.step."""
    with_closure(recorder, lambda model: torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True))


@program
def cnn_closure_images(recorder):
    """The same, and in the closure images are worked on before the first autograd node."""
    with_closure(recorder, lambda model: torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True),
                 nn.Sequential(nn.Dropout(0.1), nn.Tanh(), nn.Softplus(), small()),
                 torch.rand(IMAGES))


class OldAdagrad(torch.optim.Optimizer):
    """Updates parameters' data with gradients on, as optimizers did before torch.no_grad."""
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            sum_ = self.state[parameter].setdefault("sum", torch.zeros_like(parameter.data))
            sum_.addcmul_(parameter.grad.data, parameter.grad.data)
            parameter.data.addcdiv_(parameter.grad.data, sum_.sqrt().add_(1e-9), value=-1e-3)


@program
def mlp_old_optimizer(recorder):
    """An optimizer whose operators carry sequence numbers, as data before a pass does."""
    model = perceptron()
    train(recorder, model, cross_entropy(), [torch.randn(16, 32)], steps=2,
          optimizer=OldAdagrad(model.parameters()))


@program
def mlp_lbfgs(recorder):
    with_closure(recorder, lambda model: torch.optim.LBFGS(model.parameters(), max_iter=4))


@program
def mlp_gradient_penalty(recorder):
    """create_graph: the backward pass is itself differentiated."""
    model, loss, x = recorder.watch(perceptron()), cross_entropy(), torch.randn(
        16, 32, requires_grad=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    with recorder.recording():
        out = model(x)
        with recorder.phase("loss"):
            value = loss(out)
        gradient, = torch.autograd.grad(value, x, create_graph=True)
        with recorder.phase("loss"):
            penalty = value + gradient.square().sum()
        penalty.backward()
        optimizer.step()


# --- calls with and without gradients, most of them in one range


def in_ranges(recorder, forward, parameters, steps=1, backward=torch.Tensor.backward):
    """Training with the user's ranges. `forward()` gives the loss."""
    optimizer = torch.optim.SGD(list(parameters), lr=1e-3, foreach=True)
    with recorder.recording():
        for _ in range(steps):
            optimizer.zero_grad()
            with torch.cuda.nvtx.range("forward"):
                value = recorder.forward(forward)()
            with torch.cuda.nvtx.range("backward"):
                backward(value)
            optimizer.step()


def frozen(module):
    return module.requires_grad_(False)


def adapted():
    """Frozen weights with adapters beside them; queries and values have the same sizes."""
    class Adapted(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = frozen(nn.Linear(32, 32))
            self.down, self.up = nn.Linear(32, 4, bias=False), nn.Linear(4, 32, bias=False)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x))

    return nn.Sequential(frozen(nn.Linear(32, 32)), nn.ReLU(), Adapted(), nn.ReLU(),
                         Adapted(), nn.ReLU(), frozen(nn.Linear(32, 32)))


@program
def lora(recorder):
    """Adapters beside frozen weights."""
    model, x = adapted(), torch.randn(16, 32)
    in_ranges(recorder, lambda: model(x).square().mean(),
              [p for p in model.parameters() if p.requires_grad], steps=2)


@program
def lora_without_ranges(recorder):
    """The same; only numbers tell what ran forward."""
    model, x = recorder.watch(adapted()), torch.randn(16, 32)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], foreach=True)
    with recorder.recording():
        for _ in range(2):
            optimizer.zero_grad()
            out = model(x)
            with recorder.phase("loss"):
                value = out.square().mean()
            value.backward()
            optimizer.step()


def stem():
    model = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1),
                          nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1, stride=2))
    frozen(model[0])
    frozen(model[1])
    return model


@program
def frozen_stem(recorder):
    """Two frozen convolutions before trained ones of the same sizes, one with another stride."""
    model = stem()
    x = torch.randn(2, 4, 12, 12)
    in_ranges(recorder, lambda: model(x).square().mean(),
              [*model[2].parameters(), *model[3].parameters()])


@program
def teacher_inside(recorder):
    """Distillation: a teacher of the same architecture in the same range, without gradients."""
    student, teacher, x = perceptron(), perceptron(), torch.randn(16, 32)

    def forward():
        out = student(x)
        with torch.no_grad():
            wanted = teacher(x)
        return functional.mse_loss(out, wanted)

    in_ranges(recorder, forward, student.parameters(), steps=2)


@program
def target_network(recorder):
    """Q-learning: the target network runs first, with gradients on and detached."""
    network, target, x = perceptron(), frozen(perceptron()), torch.randn(16, 32)

    def forward():
        wanted = target(x).max(1).values.detach()
        return functional.mse_loss(network(x).max(1).values, wanted)

    in_ranges(recorder, forward, network.parameters())


@program
def lstm_cells(recorder):
    """nn.LSTM without a library's own: a product a step."""
    model, x = nn.LSTM(8, 12), torch.randn(5, 3, 8)
    with torch.backends.mkldnn.flags(enabled=False):
        in_ranges(recorder, lambda: model(x)[0].square().mean(), model.parameters())


@program
def graph_convolution(recorder):
    """A sparse adjacency with the features: by torch.sparse.mm, and by the usual product."""
    edges = torch.stack([torch.arange(40), (torch.arange(40) * 7 + 1) % 40])
    graph, x = torch.sparse_coo_tensor(edges, torch.ones(40), (40, 40)).coalesce(), torch.randn(
        40, 16)
    one, two = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward():
        hidden = torch.sparse.mm(graph, one(x)).relu()
        return torch.mm(graph, two(hidden)).square().mean()

    in_ranges(recorder, forward, [*one.parameters(), *two.parameters()])


@program
def twice_backward(recorder):
    """One graph is differentiated twice."""
    model, x = perceptron(), torch.randn(16, 32)

    def backward(value):
        value.backward(retain_graph=True)
        value.backward()

    in_ranges(recorder, lambda: model(x).square().mean(), model.parameters(), backward=backward)


class Distilled(nn.Module):
    """A student whose teacher runs in the middle of its forward pass."""
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(32, 64), nn.Linear(64, 10)
        self.teacher = frozen(perceptron())

    def forward(self, x):
        hidden = self.first(x).relu()
        with torch.no_grad():
            wanted = self.teacher(x)
        return self.last(hidden) - wanted


@program
def teacher_between(recorder):
    """No range of the user's says where the teacher's layers end."""
    train(recorder, Distilled(), lambda out: out.square().mean(), [torch.randn(16, 32)], steps=2)


@program
def per_sample_gradients(recorder):
    """torch.func: gradients of each sample by vmap."""
    from torch import func
    model, x = perceptron(), torch.randn(6, 32)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights, sample):
        with recorder.phase("forward"):
            return func.functional_call(model, weights, (sample.unsqueeze(0), )).square().mean()

    with recorder.recording():
        func.vmap(func.grad(loss), in_dims=(None, 0))(parameters, x)


@program
def mlp_hooks(recorder):
    """A hook of a tensor and one after each accumulated gradient, with work of their own."""
    def halve(parameter):
        parameter.grad.mul_(0.5)

    model = perceptron()
    model[2].weight.register_hook(lambda g: g * 0.5)
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(halve)
    train(recorder, model, cross_entropy(), [torch.randn(16, 32)])


def orthogonal(recorder, gradient, rounds=3):
    """Muon's update: Newton-Schulz steps towards the nearest orthogonal matrix. Its products are
    no part of backward."""
    x = gradient / (gradient.norm() + 1e-7)
    for _ in range(rounds):
        with recorder.hook():
            cube = x @ x.T @ x
        x = 1.5 * x - 0.5 * cube
    return x


@program
def mlp_hook_products(recorder):
    """Products in hooks that run inside of backward: an update as Muon's after a gradient is
    accumulated, a low rank of the gradient of a hidden layer, and of a module's input."""
    def update(parameter):
        if parameter.ndim == 2:
            with torch.no_grad():
                parameter.sub_(orthogonal(recorder, parameter.grad), alpha=1e-3)

    def low_rank(gradient):
        with torch.no_grad(), recorder.hook():
            return gradient @ basis @ basis.T

    model, basis = perceptron(), torch.eye(64)[:, :48]
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    model[0].register_forward_hook(lambda *a: a[2].register_hook(low_rank) and None)
    model[2].register_full_backward_hook(lambda _, gradients, __: (low_rank(gradients[0]), ))
    train(recorder, model, cross_entropy(), [torch.randn(16, 32)])


class Deferred(torch.autograd.Function):
    """A product whose weights' gradient is put off: nothing that autograd runs computes it."""
    later = []

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return functional.linear(x, weight)

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors

        def weights():
            made = gradient.T @ x
            weight.grad = made if weight.grad is None else weight.grad + made

        Deferred.later.append(weights)
        return gradient @ weight, None


class DeferredLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)

    def forward(self, x):
        return Deferred.apply(x, self.weight).relu()


@program
def deferred_weights(recorder):
    """Zero bubble: the weights' gradients are computed once the pipeline has nothing else to do,
    outside of autograd."""
    model = recorder.watch(nn.Sequential(DeferredLayer(32, 48), DeferredLayer(48, 40),
                                         DeferredLayer(40, 24)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    x = torch.randn(16, 32, requires_grad=True)
    with recorder.recording():
        optimizer.zero_grad()
        for _ in range(2):
            out = model(x)
            with recorder.phase("loss"):
                value = out.square().mean()
            value.backward()
        with torch.no_grad(), recorder.phase("backward"):
            while Deferred.later:
                Deferred.later.pop(0)()
        optimizer.step()


@program
def dual_pipe(recorder):
    """DualPipe: layers of one micro-batch's backward pass run between layers of the next one's
    forward pass, weights' gradients behind them. Each layer has a graph of its own."""
    layers = [DeferredLayer(32, 48), DeferredLayer(48, 40), DeferredLayer(40, 24)]
    optimizer = torch.optim.SGD([layer.weight for layer in layers], lr=1e-3, foreach=True)

    def ahead(chunk, layer):
        given = chunk[-1][1].detach().requires_grad_()
        with recorder.phase("forward"):
            chunk.append((given, layer(given)))

    def back(chunk, gradient):
        given, out = chunk.pop()
        torch.autograd.backward(out, gradient)
        with torch.no_grad(), recorder.phase("backward"):
            while Deferred.later:
                Deferred.later.pop(0)()
        return given.grad

    with recorder.recording():
        optimizer.zero_grad()
        before = None
        for _ in range(3):
            chunk, gradient = [(None, torch.randn(16, 32))], None
            if before:
                with recorder.phase("loss"):
                    gradient = before[-1][1].detach() * (2 / before[-1][1].numel())
            for layer in layers:
                ahead(chunk, layer)
                if before:
                    gradient = back(before, gradient)
            before = chunk
        with recorder.phase("loss"):
            gradient = before[-1][1].detach() * (2 / before[-1][1].numel())
        while len(before) > 1:
            gradient = back(before, gradient)
        optimizer.step()


@program
def forward_mode(recorder):
    """A loss of how much the network changes in one direction, by torch.func.jvp."""
    from torch import func
    model, x = recorder.watch(perceptron()), torch.randn(16, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    with recorder.recording():
        optimizer.zero_grad()
        out, change = func.jvp(model, (x, ), (torch.ones_like(x), ))
        with recorder.phase("loss"):
            value = out.square().mean() + change.square().mean()
        value.backward()
        optimizer.step()


@program
def spectral_norm(recorder):
    """Weights are divided by their largest singular value, which a power iteration without
    gradients finds before each layer, the first one, too."""
    norm = nn.utils.parametrizations.spectral_norm
    model = nn.Sequential(norm(nn.Linear(32, 24)), nn.ReLU(), norm(nn.Linear(24, 10)))
    train(recorder, model, cross_entropy(), [torch.randn(16, 32)], steps=2)


@program
def frozen_stem_without_ranges(recorder):
    """Two frozen convolutions before trained ones of the same sizes, one with another stride;
    only numbers tell what ran forward: from a trained norm on, which lies between."""
    convolutions = stem()
    model = nn.Sequential(convolutions[0], convolutions[1], nn.BatchNorm2d(4), convolutions[2],
                          convolutions[3])
    train(recorder, model, lambda out: out.square().mean(), [torch.randn(2, 4, 12, 12)])


def gpt_step(recorder, fused=True, reentrant=None, cast=torch.float32, **options):
    model, loss, inputs, parts = networks.gpt(fused)
    model.to(cast)
    if reentrant is not None:
        for part in parts:
            checkpointed(recorder, part, reentrant)
    train(recorder, model, loss, inputs, **options)


@program
def gpt_checkpoint_reentrant(recorder):
    gpt_step(recorder, reentrant=True)


@program
def gpt_accumulation(recorder):
    gpt_step(recorder, micro_batches=2, steps=2)


@program
def lightning(recorder):
    """Lightning with its own profiler: it passes forward and backward to the optimizer as a
    closure."""
    import lightning
    from lightning.pytorch.profilers import PyTorchProfiler
    recorder.versions = {"with": f"lightning {lightning.__version__}"}

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = recorder.watch(small())

        def training_step(self, batch, _):
            images, labels = batch
            out = self.net(images)
            with recorder.phase("loss"):
                return functional.cross_entropy(out, labels)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3, foreach=True)

    data = torch.utils.data.TensorDataset(torch.randn(8, 3, 16, 16), classes(8, 10))
    trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", devices=1, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False,
                                profiler=PyTorchProfiler(emit_nvtx=True, record_shapes=True))
    with recorder.observing():
        trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=4))


# --- Names of modules by flopinj.torch.annotate() ------------------------------------------------


@contextlib.contextmanager
def annotated(recorder, model, steps=None):
    """The model's modules have flopinj.torch's ranges in so many steps, its operators those of
    emit_nvtx. In other steps as_gpu.py leaves these out, too."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))
    import flopinj.torch as names

    nvtx = torch.cuda.nvtx
    names._nvtx = lambda: (lambda name: nvtx.range_push(name.decode()), nvtx.range_pop, None,
                           lambda name: nvtx.range_start(name.decode()), nvtx.range_end)
    with recorder.recording(), names.annotate(model, steps=steps, operators=False):
        yield torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)


def updated(recorder, optimizer, loss):
    """A step; `loss` is a function that runs the forward pass."""
    optimizer.zero_grad()
    with recorder.phase("forward"):
        value = loss()
    value.backward()
    optimizer.step()


@program
def annotated_evaluation(recorder):
    """Validation without gradients, by no_grad and by inference_mode, between steps; the last one
    trains in eval()."""
    model, loss, images = small(), cross_entropy(), torch.randn(IMAGES)
    with annotated(recorder, model) as optimizer:
        updated(recorder, optimizer, lambda: loss(model(images)))
        model.eval()
        for off in (torch.no_grad, torch.inference_mode):
            with off(), recorder.phase("evaluation"):
                loss(model(images))
        updated(recorder, optimizer, lambda: loss(model(images)))


@program
def annotated_ppo(recorder):
    """PPO: actions and values of a rollout without gradients, then two epochs of updates."""
    model, x = perceptron(), torch.randn(16, 32)
    with annotated(recorder, model) as optimizer:
        with torch.no_grad(), recorder.phase("evaluation"):
            before = torch.cat([model(x[i:i + 4]).log_softmax(1) for i in range(0, 16, 4)])

        def loss():
            ratio = (model(x).log_softmax(1) - before).exp()
            return -torch.min(ratio, ratio.clamp(0.8, 1.2)).mean()

        for _ in range(2):
            updated(recorder, optimizer, loss)


@program
def annotated_grpo(recorder):
    """GRPO: tokens are drawn one after another, and a reference says how far the policy is."""
    model, reference, x = perceptron(), frozen(perceptron()), torch.randn(8, 32)
    with annotated(recorder, model) as optimizer:
        for _ in range(2):
            with torch.no_grad(), recorder.phase("evaluation"):
                for _ in range(5):
                    torch.multinomial(model(x).softmax(1), 1)
                wanted = reference(x).log_softmax(1)

            def loss(wanted=wanted):
                said = model(x).log_softmax(1)
                return (said.exp() * (said - wanted)).sum(1).mean()

            updated(recorder, optimizer, loss)


@program
def annotated_grad_cache(recorder):
    """GradCache: all chunks without gradients, the gradient of the whole loss by their outputs,
    then chunk by chunk with it."""
    model, chunks = perceptron(), torch.randn(16, 32).chunk(2)
    with annotated(recorder, model) as optimizer:
        optimizer.zero_grad()
        with torch.no_grad(), recorder.phase("evaluation"):
            whole = torch.cat([model(chunk) for chunk in chunks])
        with recorder.phase("forward"):
            value = (whole.requires_grad_() @ whole.T).square().mean()
        value.backward()
        for chunk, gradient in zip(chunks, whole.grad.chunk(2)):
            with recorder.phase("forward"):
                out = model(chunk)
            out.backward(gradient)
        optimizer.step()


@program
def annotated_self_taught(recorder):
    """The network is its own teacher, without gradients between the forward pass and the loss."""
    model, x = perceptron(), torch.randn(16, 32)
    with annotated(recorder, model) as optimizer:
        for _ in range(2):
            optimizer.zero_grad()
            with recorder.phase("forward"):
                out = model(x)
            with torch.no_grad(), recorder.phase("evaluation"):
                wanted = model(x + 0.1)
            with recorder.phase("loss"):
                value = functional.mse_loss(out, wanted)
            value.backward()
            optimizer.step()
