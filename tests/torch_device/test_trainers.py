"""Unmodified training libraries: Trainer, accelerate, PEFT, Lightning, diffusers."""

import copy

import pytest
from language_models import language_model

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")

transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")

WORDS = torch.randint(3, 100, (32, 12), generator=torch.Generator().manual_seed(0))


def model_of_words():
    """Return a small language model."""
    return language_model("Qwen3ForCausalLM", head_dim=8)


@pytest.fixture
def on(monkeypatch):
    """Yield a function that sets the device of accelerate and of libraries that use it."""
    state = pytest.importorskip("accelerate.state")

    def choose(device):
        monkeypatch.setenv("ACCELERATE_TORCH_DEVICE", device)
        for shared in (state.AcceleratorState, state.GradientState, state.PartialState):
            shared._reset_state()

    yield choose
    choose("cpu")


def test_trainer(tmp_path, on):
    """Trainer: 20 steps with evaluations, and 10 more from a checkpoint."""
    data = [{"input_ids": words, "labels": words} for words in WORDS]

    def losses(device):
        on(device)
        options = transformers.TrainingArguments(
            str(tmp_path / device),
            max_steps=20,
            per_device_train_batch_size=4,
            logging_steps=1,
            save_steps=10,
            eval_strategy="steps",
            eval_steps=10,
            report_to=[],
            disable_tqdm=True,
        )
        trainer = transformers.Trainer(
            model_of_words(), options, train_dataset=data, eval_dataset=data[:8]
        )
        trainer.train()
        assert next(trainer.model.parameters()).device.type == device
        trainer.train(resume_from_checkpoint=str(tmp_path / device / "checkpoint-10"))
        seen = trainer.state.log_history
        found = [of[name] for of in seen for name in ("loss", "eval_loss") if name in of]
        assert len(found) == 20 + 2
        return found

    assert losses("cluster") == pytest.approx(losses("cpu"), abs=1e-4)


@pytest.mark.parametrize("precision", ["no", "bf16"])
def test_accelerate(tmp_path, on, precision):
    """Accelerator: prepared loops, accumulated gradients, clipping, saved and loaded states."""
    from accelerate import Accelerator

    def losses(device):
        on(device)
        torch.manual_seed(0)
        accelerator = Accelerator(mixed_precision=precision, gradient_accumulation_steps=2)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 3))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        rows = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
        loader = torch.utils.data.DataLoader(rows, batch_size=8, pin_memory=True)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        found = []
        for inputs, labels in loader:
            assert inputs.device.type == device
            with accelerator.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(inputs), labels)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                found.append(accelerator.gather_for_metrics(loss.detach()).item())
        kept = [of.detach().cpu() for of in model.parameters()]
        accelerator.save_state(str(tmp_path / device))
        for parameter in model.parameters():
            parameter.data.zero_()
        accelerator.load_state(str(tmp_path / device))
        assert all(of.cpu().equal(k) for of, k in zip(model.parameters(), kept, strict=True))
        return found

    # In bfloat16 the two devices round differently.
    tolerance = 1e-4 if precision == "no" else 2e-2
    assert losses("cluster") == pytest.approx(losses("cpu"), abs=tolerance)


def test_peft(tmp_path):
    """PEFT: low-rank adapters are trained, saved, loaded and merged."""
    peft = pytest.importorskip("peft")
    options = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]}

    def trained(device):
        torch.manual_seed(0)
        model = peft.get_peft_model(
            model_of_words(), peft.LoraConfig(**options, task_type="CAUSAL_LM")
        ).to(device)
        trainable = [of for of in model.parameters() if of.requires_grad]
        optimizer = torch.optim.AdamW(trainable, lr=1e-2)
        words = WORDS[:4].to(device)
        losses = []
        for _ in range(10):
            loss = model(input_ids=words, labels=words).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        model.save_pretrained(str(tmp_path / device))
        again = peft.PeftModel.from_pretrained(model_of_words().to(device), tmp_path / device)
        logits = again(input_ids=words).logits
        assert torch.allclose(logits, model(input_ids=words).logits, atol=1e-5)
        merged = model.merge_and_unload()
        return losses, merged.generate(words[:, :4], max_new_tokens=6, do_sample=False).cpu()

    (found, said), (expected, wanted) = trained("cluster"), trained("cpu")
    assert found == pytest.approx(expected, abs=1e-4)
    assert said.equal(wanted)


@pytest.mark.parametrize("package", ["lightning", "pytorch_lightning"])
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_lightning(tmp_path, precision, package):
    """Lightning: the accelerator "cluster" trains on the device, in the requested precision."""
    lightning = pytest.importorskip(package)
    import gt.torch.lightning  # noqa: F401

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)
            )
            self.losses, self.seen = [], set()

        def training_step(self, batch, index):
            inputs, labels = batch
            outputs = self.layers(inputs)
            self.seen.add((outputs.device.type, outputs.dtype))
            loss = torch.nn.functional.cross_entropy(outputs, labels)
            self.log("loss", loss)
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    def losses(device):
        torch.manual_seed(0)
        model = Classifier()
        rows = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
        trainer = lightning.Trainer(
            accelerator=device,
            devices=1,
            max_epochs=2,
            precision=precision,
            gradient_clip_val=1.0,
            default_root_dir=tmp_path,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(model, torch.utils.data.DataLoader(rows, batch_size=8))
        dtype = torch.float32 if precision == "32-true" else torch.bfloat16
        assert model.seen == {(device, dtype)}
        return model.losses

    tolerance = 1e-4 if precision == "32-true" else 2e-2
    assert losses("cluster") == pytest.approx(losses("cpu"), abs=tolerance)


def test_lightning_mistakes():
    """Lightning: several devices, and a strategy for another device, are rejected."""
    lightning = pytest.importorskip("lightning")
    import gt.torch.lightning  # noqa: F401

    with pytest.raises(ValueError, match="devices=2.*one such device"):
        lightning.Trainer(accelerator="cluster", devices=2, logger=False)
    fabric = lightning.Fabric(accelerator="cluster", devices=1)
    assert fabric.device == torch.device("cluster", 0)
    with pytest.raises(ValueError, match="strategy for the device cpu"):
        fabric.strategy.accelerator.setup_device(torch.device("cpu"))


def test_diffusers():
    """Diffusers: a UNet learns to remove noise, and schedulers sample with it."""
    diffusers = pytest.importorskip("diffusers")
    generator = torch.Generator().manual_seed(0)
    images, noise = (torch.randn(2, 3, 16, 16, generator=generator) for _ in range(2))
    torch.manual_seed(0)
    unet = diffusers.UNet2DModel(
        sample_size=16,
        layers_per_block=1,
        block_out_channels=(16, 32),
        norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )

    def drawn(model, kind):
        scheduler = kind(num_train_timesteps=50)
        scheduler.set_timesteps(5, device=model.device)
        sample = images.to(model.device) * scheduler.init_noise_sigma
        more = {}
        if kind is diffusers.DDPMScheduler:
            more["generator"] = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for step in scheduler.timesteps:
                seen = model(scheduler.scale_model_input(sample, step), step).sample
                sample = scheduler.step(seen, step, sample, **more).prev_sample
        return sample.cpu()

    def run(device):
        model = copy.deepcopy(unet).to(device)
        scheduler = diffusers.DDPMScheduler(num_train_timesteps=50)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        steps = torch.tensor([3, 20]).to(device)
        losses = []
        for _ in range(4):
            noisy = scheduler.add_noise(images.to(device), noise.to(device), steps)
            loss = torch.nn.functional.mse_loss(model(noisy, steps).sample, noise.to(device))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        kinds = (
            diffusers.DDIMScheduler,
            diffusers.EulerDiscreteScheduler,
            diffusers.DDPMScheduler,
        )
        return losses, [drawn(model.eval(), kind) for kind in kinds]

    (found, pictures), (expected, wanted) = run("cluster"), run("cpu")
    assert found == pytest.approx(expected, abs=1e-4)
    for picture, other in zip(pictures, wanted, strict=True):
        assert torch.allclose(picture, other, rtol=1e-3, atol=1e-3 * other.abs().max())
