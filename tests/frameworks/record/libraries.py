"""Programs of other libraries than PyTorch, and of PyTorch's own ways to spread, compile and
extend a model. Models of transformers are tiny, made from configurations, with random weights:
nothing is downloaded."""

import tempfile

import networks
import torch
from programs import (IMAGES, checkpointed, classes, cross_entropy, gpt_step, perceptron, program,
                      small, train)
from torch import nn
from torch.nn import functional


def version(recorder, *modules):
    recorder.versions = {"with": ", ".join(f"{m.__name__} {m.__version__}" for m in modules)}


# --- accelerate


def accelerated(recorder, precision, accumulation=1):
    import accelerate
    version(recorder, accelerate)
    accelerator = accelerate.Accelerator(cpu=True, mixed_precision=precision,
                                         gradient_accumulation_steps=accumulation)
    model = recorder.watch(small())
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    loss, images = cross_entropy(), torch.randn(IMAGES)
    with recorder.recording():
        for _ in range(2):
            with accelerator.accumulate(model):
                out = model(images)
                with recorder.phase("loss"):
                    value = loss(out)
                accelerator.backward(value)
                optimizer.step()
                optimizer.zero_grad()


@program
def accelerate_bf16(recorder):
    accelerated(recorder, "bf16")


@program
def accelerate_accumulation(recorder):
    accelerated(recorder, "no", accumulation=2)


# --- transformers


def transformer(recorder, model, inputs, **options):
    import transformers
    version(recorder, transformers)
    train(recorder, model.train(), lambda out: out.loss, [], inputs_by_name=inputs, **options)


def tokens(number=32, shape=(2, 12)):
    return torch.randint(0, number, shape)


@program
def hf_gpt2(recorder):
    from transformers import GPT2Config, GPT2LMHeadModel
    ids = tokens()
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=32, n_positions=16, n_embd=24, n_layer=2, n_head=3))
    transformer(recorder, model, {"input_ids": ids, "labels": ids})


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=32, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16))


@program
def hf_llama(recorder):
    ids = tokens()
    transformer(recorder, llama(), {"input_ids": ids, "labels": ids})


@program
def hf_llama_autocast(recorder):
    ids = tokens()
    transformer(recorder, llama(), {"input_ids": ids, "labels": ids}, autocast=True)


@program
def hf_llama_checkpoint(recorder):
    """The library's own checkpointing of each layer."""
    model, ids = llama(), tokens()
    model.activation_checkpointing_enable({"use_reentrant": False})
    for layer in model.model.layers:
        run = layer._gradient_checkpointing_func
        layer._gradient_checkpointing_func = lambda body, *a, run=run, **k: run(
            recorder.forward(body), *a, **k)
    transformer(recorder, model, {"input_ids": ids, "labels": ids, "use_cache": False})


@program
def hf_bert(recorder):
    from transformers import BertConfig, BertForSequenceClassification
    model = BertForSequenceClassification(
        BertConfig(vocab_size=32, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                   intermediate_size=48, max_position_embeddings=16))
    transformer(recorder, model, {"input_ids": tokens(), "labels": classes(2, 2)})


@program
def hf_t5(recorder):
    from transformers import T5Config, T5ForConditionalGeneration
    model = T5ForConditionalGeneration(
        T5Config(vocab_size=32, d_model=24, d_kv=8, d_ff=48, num_layers=2, num_heads=3,
                 decoder_start_token_id=0))
    transformer(recorder, model, {"input_ids": tokens(), "labels": tokens(shape=(2, 8))})


@program
def hf_mixtral(recorder):
    from transformers import MixtralConfig, MixtralForCausalLM
    ids = tokens()
    model = MixtralForCausalLM(
        MixtralConfig(vocab_size=32, hidden_size=32, intermediate_size=48, num_hidden_layers=1,
                      num_attention_heads=4, num_key_value_heads=2, num_local_experts=4,
                      max_position_embeddings=16))
    transformer(recorder, model, {"input_ids": ids, "labels": ids})


@program
def hf_trainer(recorder):
    """transformers.Trainer, gradients accumulated over two micro-batches."""
    import transformers
    version(recorder, transformers)
    model, ids = recorder.watch(llama()), tokens(shape=(4, 12))
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(folder, per_device_train_batch_size=1,
                                                   gradient_accumulation_steps=2, max_steps=2,
                                                   use_cpu=True, report_to=[], save_strategy="no",
                                                   logging_strategy="no", disable_tqdm=True,
                                                   optim="adamw_torch")
        trainer = transformers.Trainer(
            model, arguments, train_dataset=[{"input_ids": row, "labels": row} for row in ids])
        with recorder.recording():
            trainer.train()


# --- PyTorch's own


def distributed(model_of, recorder, **options):
    import torch.distributed as dist
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    train(recorder, model_of(), cross_entropy(), [torch.randn(IMAGES)], watched=False, **options)
    dist.destroy_process_group()


@program
def ddp(recorder):
    """DistributedDataParallel over gloo: gradients are copied to buckets and reduced by hooks of
    autograd."""
    distributed(
        lambda: nn.parallel.DistributedDataParallel(recorder.watch(small()), bucket_cap_mb=0.001),
        recorder, steps=2)


@program
def ddp_autocast(recorder):
    distributed(lambda: nn.parallel.DistributedDataParallel(recorder.watch(small())), recorder,
                autocast=True)


@program
def fsdp(recorder):
    """fully_shard of each layer over gloo."""
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    mesh = dist.device_mesh.init_device_mesh("cpu", (1, ))
    model = perceptron()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(recorder, model, cross_entropy(), [torch.randn(16, 32)])
    dist.destroy_process_group()


def compiled(recorder, model, loss, inputs, backend="aot_eager"):
    """Compiled before it is recorded."""
    recorder.watch(model)
    run = torch.compile(model, backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)

    def step():
        optimizer.zero_grad()
        out = run(*inputs)
        with recorder.phase("loss"):
            value = loss(out)
        value.backward()
        optimizer.step()

    step()
    with recorder.recording():
        step()


@program
def compile_mlp(recorder):
    compiled(recorder, perceptron(), cross_entropy(), [torch.randn(16, 32)])


@program
def compile_inductor(recorder):
    """Of what inductor makes only the products go through the dispatcher. Its fused kernels, which
    add and compare, are in no range of their own and in no recording of a CPU."""
    model, loss, inputs, _ = networks.gpt()
    compiled(recorder, model, loss, inputs, "inductor")


@program
def compile_cnn(recorder):
    compiled(recorder, small(), cross_entropy(), [torch.randn(IMAGES)])


@program
def compile_gpt(recorder):
    model, loss, inputs, _ = networks.gpt()
    compiled(recorder, model, loss, inputs)


@program
def grad_scaler(recorder):
    """Half precision with a scaled loss."""
    model, loss, images = recorder.watch(small()), cross_entropy(), torch.randn(IMAGES)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=1e-3,
                                        foreach=True), torch.amp.GradScaler("cpu")
    with recorder.recording():
        for _ in range(2):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.float16):
                out = model(images)
                with recorder.phase("loss"):
                    value = loss(out)
            scaler.scale(value).backward()
            scaler.step(optimizer)
            scaler.update()


class OwnLinear(torch.autograd.Function):
    """A linear layer as libraries write their own."""
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight, gradient.t() @ x


@program
def own_function(recorder):
    """torch.autograd.Function of the user's."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.weight = nn.Linear(32, 48), nn.Parameter(torch.randn(10, 48))

        def forward(self, x):
            return OwnLinear.apply(self.first(x).relu(), self.weight)

    train(recorder, Model(), cross_entropy(), [torch.randn(16, 32)])


@program
def own_function_taught(recorder):
    """A teacher has such a function too: it shows a number where gradients are off, which is that
    of the loss."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.weight = nn.Linear(32, 48), nn.Parameter(torch.randn(40, 48))
            self.last = nn.Linear(40, 10)

        def forward(self, x):
            return self.last(OwnLinear.apply(self.first(x).relu(), self.weight))

    model, teacher, x = recorder.watch(Model()), Model(), torch.randn(16, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    with recorder.recording():
        for _ in range(2):
            optimizer.zero_grad()
            out = model(x)
            with torch.no_grad(), recorder.phase("other"):
                wanted = teacher(x)
            with recorder.phase("loss"):
                value = functional.mse_loss(out, wanted)
            value.backward()
            optimizer.step()


@program
def evaluation(recorder):
    """An evaluation without gradients between two steps: no phase of training."""
    model, loss, images = small(), cross_entropy(), torch.randn(IMAGES)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    with recorder.recording():
        for training in (True, False, True):
            model.train(training)
            if not training:
                with torch.no_grad(), recorder.phase("evaluation"):
                    loss(model(images))
                continue
            optimizer.zero_grad()
            with recorder.phase("forward"):
                value = loss(model(images))
            value.backward()
            optimizer.step()


@program
def gpt_nested_checkpoint(recorder):
    """A checkpoint inside a checkpoint: the inner one runs three times."""
    model, loss, inputs, parts = networks.gpt()
    for part in parts:
        checkpointed(recorder, part.mlp, reentrant=False)
        checkpointed(recorder, part, reentrant=False)
    train(recorder, model, loss, inputs)


@program
def gpt_record_function(recorder):
    """Phases by torch.profiler.record_function, on the main thread only."""
    model, loss, inputs, _ = networks.gpt()
    recorder.watch(model)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    with recorder.recording():
        for _ in range(2):
            optimizer.zero_grad()
            with torch.profiler.record_function("forward"):
                out = model(*inputs)
                with recorder.phase("loss"):
                    value = loss(out)
            with torch.profiler.record_function("backward"):
                value.backward()
            optimizer.step()


@program
def gpt_bf16(recorder):
    """Parameters in bfloat16, no autocast."""
    gpt_step(recorder, cast=torch.bfloat16)


@program
def gan(recorder):
    """Two networks and two optimizers; the discriminator runs on the generator's images twice."""
    generator = nn.Sequential(nn.ConvTranspose2d(8, 8, 4), nn.BatchNorm2d(8), nn.ReLU(),
                              nn.ConvTranspose2d(8, 3, 4, 2, 1))
    judge = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 4))
    forms, real = recorder.forward(generator), torch.randn(4, 3, 8, 8)
    judges = recorder.forward(judge)
    first = torch.optim.Adam(generator.parameters(), foreach=True)
    second = torch.optim.Adam(judge.parameters(), foreach=True)
    with recorder.recording():
        made = forms(torch.randn(4, 8, 1, 1))
        with recorder.phase("forward"):
            value = functional.softplus(-judge(real)).mean() + functional.softplus(
                judge(made.detach())).mean()
        value.backward()
        second.step()
        second.zero_grad()
        out = judges(made)
        with recorder.phase("loss"):
            value = functional.softplus(-out).mean()
        value.backward()
        first.step()


@program
def layers_of_all_kinds(recorder):
    """Convolutions of one and three dimensions, transposed, dilated; a bilinear layer, an
    embedding bag, multi-head attention."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Conv1d(4, 6, 3, stride=2, padding=1)
            self.back = nn.ConvTranspose1d(6, 4, 3, stride=2, output_padding=1)
            self.space = nn.Conv3d(2, 4, 3, padding=1, dilation=1, groups=2)
            self.wide = nn.Conv2d(4, 4, 3, padding=2, dilation=2)
            self.both, self.bag = nn.Bilinear(4, 5, 6), nn.EmbeddingBag(10, 5, mode="sum")
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x, volume, ids):
            a = self.back(self.line(x)).mean(2)
            b = self.wide(self.space(volume).mean(2)).mean((2, 3))
            c = self.both(a, self.bag(ids))
            d = self.attention(
                x.transpose(1, 2).repeat(1, 1, 2),
                x.transpose(1, 2).repeat(1, 1, 2),
                x.transpose(1, 2).repeat(1, 1, 2))[0]
            return torch.cat([b, c], 1).sum(1) + d.sum((1, 2))

    train(recorder, Model(), lambda out: out.square().mean(),
          [torch.randn(3, 4, 9),
           torch.randn(3, 2, 4, 6, 6),
           torch.randint(0, 10, (3, 4))])


@program
def complex_products(recorder):
    """Products of complex numbers, as networks on spectra have them."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Parameter(torch.randn(9, 12, dtype=torch.complex64))
            self.second = nn.Linear(12, 5, dtype=torch.complex64)

        def forward(self, x):
            return self.second(torch.fft.rfft(x) @ self.first)

    train(recorder, Model(), lambda out: out.abs().square().mean(), [torch.randn(6, 16)])
