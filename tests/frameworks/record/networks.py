"""Networks with the structure of the published ones and small widths and images. Each function
gives the model, a function from its output to the loss, its inputs, and the parts that
checkpointing takes."""

import torch
from torch import nn
from torch.nn import functional


def classifier(model, images, parts, number=10):
    def loss(out):
        out = out[0] if isinstance(out, tuple) else out
        return functional.cross_entropy(out, torch.arange(images[0]) % number)

    return model, loss, [torch.randn(images)], parts


class Attention(nn.Module):
    def __init__(self, width, heads, fused, causal=True):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.fused, self.causal = heads, fused, causal

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for p in self.qkv(x).split(c, dim=2))
        if self.fused:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            scores = q @ k.transpose(-2, -1) * (c // self.heads)**-0.5
            if self.causal:
                scores = scores.masked_fill(
                    torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
            y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width, heads, fused, causal=True):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, fused, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, fused, vocabulary=48, context=16, width=24, heads=3, layers=2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, fused) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt(fused=True):
    model, tokens = GPT(fused), torch.randint(0, 48, (2, 16))
    return model, lambda out: functional.cross_entropy(out.flatten(0, 1), tokens.flatten()), [
        tokens
    ], list(model.blocks)


NETWORKS = {"gpt": gpt, "gpt_unfused": lambda: gpt(False)}

# --- torchvision's own, as narrow as their options allow


def vision():
    import torchvision.models as models
    from torchvision.models import convnext, densenet, resnet, swin_transformer, vgg

    def of(make, images, parts=lambda m: list(m.features)[1:3]):
        def build():
            model = make()
            return classifier(model, images, parts(model))

        return build

    small_vgg = (8, "M", 12, "M", 16, 16, "M")

    def vgg_net():
        model = vgg.VGG(vgg.make_layers(list(small_vgg)), num_classes=10, init_weights=False)
        model.classifier = nn.Sequential(nn.Linear(16 * 49, 32), nn.ReLU(True), nn.Dropout(),
                                         nn.Linear(32, 10))
        return model

    def alexnet():
        model = models.AlexNet(num_classes=10)
        model.classifier = nn.Sequential(nn.Dropout(), nn.Linear(256 * 36, 32),
                                         nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(32, 10))
        return model

    def blocks(model):
        return [
            block for name in ("layer1", "layer2", "layer3", "layer4")
            for block in getattr(model, name)
        ]

    def narrow_resnet(model):
        """torchvision's stages at an eighth of their width: its basic blocks have no option for
        that."""
        for module in list(model.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Conv2d):
                    inputs = child.in_channels if child.in_channels == 3 else child.in_channels // 8
                    setattr(
                        module, name,
                        nn.Conv2d(inputs, child.out_channels // 8, child.kernel_size, child.stride,
                                  child.padding, bias=False))
                elif isinstance(child, nn.BatchNorm2d):
                    setattr(module, name, nn.BatchNorm2d(child.num_features // 8))
                elif isinstance(child, nn.Linear):
                    setattr(module, name, nn.Linear(child.in_features // 8, 10))
        return model

    return {
        "alexnet": of(alexnet, (2, 3, 63, 63), lambda m: [m.features]),
        "vgg": of(vgg_net, (2, 3, 32, 32), lambda m: [m.features]),
        "resnet18": of(lambda: narrow_resnet(models.resnet18()), (2, 3, 32, 32), blocks),
        "resnet_bottleneck": of(
            lambda: narrow_resnet(resnet.ResNet(resnet.Bottleneck, [2, 1, 1, 1])), (2, 3, 32, 32),
            blocks),
        "densenet": of(lambda: densenet.DenseNet(8, (2, 3, 2), 16, num_classes=10), (2, 3, 32, 32),
                       lambda m: [m.features.denseblock1, m.features.denseblock2]),
        "mobilenet_v2": of(lambda: models.MobileNetV2(num_classes=10, width_mult=0.25),
                           (2, 3, 32, 32), lambda m: list(m.features)[2:5]),
        "efficientnet": of(efficientnet, (2, 3, 32, 32), lambda m: list(m.features)[1:3]),
        "vit": of(lambda: models.VisionTransformer(16, 8, 2, 2, 16, 32, num_classes=10),
                  (2, 3, 16, 16), lambda m: list(m.encoder.layers)),
        "swin": of(
            lambda: swin_transformer.SwinTransformer([2, 2], 8, [2, 2], [2, 2], [4, 4], num_classes=
                                                     10), (2, 3, 16, 16),
            lambda m: list(m.features)[1:2]),
        "convnext": of(
            lambda: convnext.ConvNeXt(
                [convnext.CNBlockConfig(8, 16, 2),
                 convnext.CNBlockConfig(16, None, 1)], num_classes=10), (2, 3, 32, 32),
            lambda m: list(m.features)[1:2]),
        "inception": of(Inception, (2, 3, 32, 32), lambda m: [m.a, m.b]),
    }


def efficientnet():
    from torchvision.models import efficientnet as source
    settings = [
        source.MBConvConfig(1, 3, 1, 32, 16, 1, width_mult=0.25),
        source.MBConvConfig(6, 3, 2, 16, 24, 2, width_mult=0.25),
        source.MBConvConfig(6, 5, 2, 24, 40, 2, width_mult=0.25),
        source.MBConvConfig(6, 3, 2, 40, 80, 2, width_mult=0.25)
    ]
    return source.EfficientNet(settings, dropout=0.2, num_classes=10)


class ConvNormRelu(nn.Sequential):
    def __init__(self, inputs, outputs, kernel, **options):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, bias=False, **options),
                         nn.BatchNorm2d(outputs, eps=0.001), nn.ReLU(True))


class Branches(nn.Module):
    """An Inception block. Two of its branches begin with layers alike in everything, two have
    layers alike but for their stride."""
    def __init__(self, inputs):
        super().__init__()
        self.one = ConvNormRelu(inputs, 4, 1)
        self.three = nn.Sequential(ConvNormRelu(inputs, 4, 1), ConvNormRelu(4, 6, 3, padding=1))
        self.five = nn.Sequential(ConvNormRelu(inputs, 4, 1), ConvNormRelu(4, 6, 3, padding=1),
                                  ConvNormRelu(6, 6, 3, padding=1))
        self.seven = nn.Sequential(ConvNormRelu(inputs, 4, 1),
                                   ConvNormRelu(4, 4, (1, 7), padding=(0, 3)),
                                   ConvNormRelu(4, 4, (7, 1), padding=(3, 0)))
        self.pool = ConvNormRelu(inputs, 4, 1)

    def forward(self, x):
        pooled = functional.avg_pool2d(x, 3, stride=1, padding=1)
        return torch.cat(
            [self.one(x),
             self.three(x),
             self.five(x),
             self.seven(x),
             self.pool(pooled)], 1)


class Reduction(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.straight = ConvNormRelu(inputs, 8, 3, stride=2)
        self.same = ConvNormRelu(inputs, 8, 3, stride=1, padding=1)
        self.then = ConvNormRelu(8, 8, 3, stride=2)

    def forward(self, x):
        return torch.cat(
            [self.straight(x),
             self.then(self.same(x)),
             functional.max_pool2d(x, 3, stride=2)], 1)


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(ConvNormRelu(3, 8, 3, stride=2), ConvNormRelu(8, 8, 3),
                                  nn.MaxPool2d(2))
        self.a, self.reduce = Branches(8), Reduction(24)
        self.b, self.head = Branches(40), nn.Linear(24, 10)

    def forward(self, x):
        x = self.b(self.reduce(self.a(self.stem(x))))
        return self.head(
            functional.dropout(
                functional.adaptive_avg_pool2d(x, 1).flatten(1), training=self.training))


# --- others


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.tokens, self.layer, self.head = nn.Embedding(32, 12), layer, nn.Linear(16, 32)

    def forward(self, tokens):
        return self.head(self.layer(self.tokens(tokens))[0])


def recurrent(make):
    def build():
        tokens, model = torch.randint(0, 32, (3, 7)), Recurrent(make())
        return model, lambda out: functional.cross_entropy(out.flatten(0, 1), tokens.flatten()), [
            tokens
        ], [model.head]

    return build


class Residual(nn.Module):
    """A block of a diffusion model's U-Net: the time is added between two convolutions."""
    def __init__(self, inputs, outputs, times):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, inputs), nn.SiLU(),
                                   nn.Conv2d(inputs, outputs, 3, padding=1))
        self.time = nn.Linear(times, outputs)
        self.second = nn.Sequential(nn.GroupNorm(4, outputs), nn.SiLU(), nn.Dropout(0.1),
                                    nn.Conv2d(outputs, outputs, 3, padding=1))
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        h = self.first(x) + self.time(functional.silu(time))[:, :, None, None]
        return self.second(h) + self.shortcut(x)


class UNet(nn.Module):
    def __init__(self, width=8, times=16):
        super().__init__()
        self.times = nn.Sequential(nn.Linear(times, times), nn.SiLU(), nn.Linear(times, times))
        self.stem, self.down1 = nn.Conv2d(3, width, 3, padding=1), Residual(width, width, times)
        self.shrink, self.down2 = nn.Conv2d(width, width, 3, stride=2,
                                            padding=1), Residual(width, 2 * width, times)
        self.middle, self.norm = Attention(2 * width, 2, fused=True,
                                           causal=False), nn.GroupNorm(4, 2 * width)
        self.up1, self.grow = Residual(3 * width, width,
                                       times), nn.ConvTranspose2d(2 * width, 2 * width, 4, stride=2,
                                                                  padding=1)
        self.out = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        frequencies = torch.exp(torch.arange(8) * -0.5)
        time = torch.cat([(t[:, None] * frequencies).sin(), (t[:, None] * frequencies).cos()], 1)
        time = self.times(time)
        first = self.down1(self.stem(x), time)
        h = self.down2(self.shrink(first), time)
        b, c, height, width = h.shape
        h = h + self.middle(self.norm(h).flatten(2).transpose(1, 2)).transpose(1, 2).reshape(
            b, c, height, width)
        return self.out(self.up1(torch.cat([self.grow(h), first], 1), time))


def unet():
    images, model = torch.randn(2, 3, 16, 16), UNet()
    noise = torch.randn_like(images)
    return model, lambda out: functional.mse_loss(out, noise), [
        images + noise, torch.tensor([3.0, 7.0])
    ], [model.down2, model.up1]


class Experts(nn.Module):
    """Two of four experts for each token, chosen by a router; each expert works on the tokens
    that it got."""
    def __init__(self, width=16):
        super().__init__()
        self.router = nn.Linear(width, 4, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, width)) for _ in range(4))

    def forward(self, x):
        tokens = x.flatten(0, 1)
        weights, chosen = self.router(tokens).softmax(-1).topk(2)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(chosen == number)
            out = out.index_add(0, token,
                                (expert(tokens[token]) * weights[token, place, None]).to(out.dtype))
        return out.view_as(x)


class MixtureOfExperts(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.tokens, self.norm = nn.Embedding(32, width), nn.LayerNorm(width)
        self.attention, self.experts, self.head = Attention(width, 2,
                                                            fused=True), Experts(width), nn.Linear(
                                                                width, 32)

    def forward(self, tokens):
        x = self.tokens(tokens)
        x = x + self.attention(x)
        return self.head(x + self.experts(self.norm(x)))


def mixture_of_experts():
    tokens, model = torch.randint(0, 32, (2, 12)), MixtureOfExperts()
    return model, lambda out: functional.cross_entropy(out.flatten(0, 1), tokens.flatten()), [
        tokens
    ], [model.experts]


NETWORKS |= {
    **vision(), "lstm": recurrent(lambda: nn.LSTM(12, 16, batch_first=True)), "unet": unet,
    "mixture_of_experts": mixture_of_experts
}
