"""A network that Lightning trains: a callback names modules and operators in the first steps, and
makes a range of each batch.

    flopinj run -o lightning.pb -- python examples/lightning_mlp.py
    flopinj report --sections total,steps,layers lightning.pb
"""

import closing
import flopinj.callbacks
import lightning
import torch
from torch import nn
from torch.nn import functional


class Network(lightning.LightningModule):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width),
                                    nn.ReLU(), nn.Linear(width, 10))

    def training_step(self, batch, _):
        images, labels = batch
        return functional.cross_entropy(self.layers(images), labels)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    options = closing.options(__doc__, width=4096, batch=512, steps=100)
    lightning.seed_everything(0)
    count = options.batch * options.steps
    data = torch.utils.data.TensorDataset(torch.randn(count, 784), torch.randint(10, (count,)))
    trainer = lightning.Trainer(
        max_epochs=1, devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[flopinj.callbacks.lightning(steps=20)])
    trainer.fit(Network(options.width), torch.utils.data.DataLoader(data, options.batch))
    print(f"{trainer.global_step} steps on {trainer.strategy.root_device.type}")
    closing.say_next()


if __name__ == "__main__":
    main()
