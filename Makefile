# The only door: `make help` lists what there is.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Formatting and the like need no PyTorch; `test-all` and `bench` do.
STAMP := $(VENV)/.installed
RUST_SOURCES := $(shell find crates third_party -name '*.rs' -o -name 'Cargo.toml' 2>/dev/null) Cargo.toml Cargo.lock pyproject.toml

.DEFAULT_GOAL := help

help: ## Say what each target does
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.tools: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet 'maturin>=1.9,<2' 'numpy>=1.24' 'pytest>=8' pytest-timeout scikit-learn matplotlib tqdm ruff mypy
	@touch $@

$(STAMP): $(VENV)/.tools $(RUST_SOURCES)
	. $(BIN)/activate && maturin develop --release --quiet
	@touch $@

build: $(STAMP) ## Set up the virtual environment and build GT into it

demo: build ## Train on handwritten digits, embedded and on a server with two workers
	$(BIN)/python examples/demo_digits.py

test: build ## Run all tests that need neither a GPU nor PyTorch
	cargo test --workspace --exclude gt-python --quiet
	cargo test -p gt --features model --test handover --quiet
	$(BIN)/python -m pytest tests
	GT_TEST_SERVER=local $(BIN)/python -m pytest tests
	GT_TEST_SHARDED=1 $(BIN)/python -m pytest tests

HOURS ?= 1
soak: build ## Use a cluster for HOURS, and count everything that could grow
	$(BIN)/python tests/soak.py --hours $(HOURS)

repeat: build ## Run the suite 100 times, embedded, on a server and cut over workers in turn
	for round in $$(seq 34); do \
	  $(BIN)/python -m pytest -q tests || exit 1; \
	  GT_TEST_SERVER=local $(BIN)/python -m pytest -q tests || exit 1; \
	  GT_TEST_SHARDED=1 $(BIN)/python -m pytest -q tests || exit 1; \
	done

FIRST ?= 0
COUNT ?= 100000
# Linked in a minute, and as fast.
chaos: export CARGO_PROFILE_RELEASE_LTO := off
chaos: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS := 16
chaos: ## Run simulated schedules with faults, from FIRST on, COUNT of them
	cargo run --release --quiet -p gt-sim --example chaos -- $(FIRST) $(COUNT) $$(nproc)

MOMENTS ?= 1000
SEED ?= 0
WORKERS ?= 2
chaos-processes: build ## Train on WORKERS while processes are killed or stopped and connections cut, at MOMENTS made of SEED
	$(BIN)/python tests/chaos.py --moments $(MOMENTS) --seed $(SEED) --workers $(WORKERS)

# Programs that others train with, which the device cluster is to run.
TRAINERS := 'transformers==5.23.*' 'accelerate==1.15.*' 'diffusers==0.42.*' 'lightning==2.6.*' 'pytorch-lightning==2.6.*' 'peft==0.21.*'

$(VENV)/.compare: $(VENV)/.tools
	$(BIN)/pip install --quiet 'torch==2.15.*' 'torchvision==0.29.*' $(TRAINERS) jax expecttest scipy
	@touch $@

# Those that PyTorch or JAX takes part in; all others are what `make test` runs.
WITH_TORCH := tests/torch_device tests/coverage tests/data tests/distributions tests/engines tests/formats tests/gpu tests/models tests/nn \
	tests/ops tests/optim $(shell grep -l torch tests/test_*.py)
# Those whose results come from an engine, rather than from servers and tools.
COMPUTING := tests/nn tests/ops tests/optim $(addprefix tests/test_,$(addsuffix .py,arrays autograd autograd_function \
	autograd_functional counted debug default_dtype examples func functional generated hotpaths \
	programs_of_pytorch sharding_numbers signal tensor text views vmap))

torch-extension: build $(VENV)/.compare ## Build the part of gt.torch in C++
	@if command -v $${CXX:-c++} > /dev/null; then $(BIN)/python -m gt.torch.build; \
	else echo "SKIPPED: the part of gt.torch in C++, as there is no C++ compiler"; fi

# Those whose results depend on how operators are called.
CALLING := $(addprefix tests/torch_device/test_,$(addsuffix .py,device mistakes numbers repeated_calls))

test-all: torch-extension ## Also install PyTorch and JAX and run the tests with them, GPUs' on a stand-in
	GT_TEST_ALL=1 $(BIN)/python -m pytest $(WITH_TORCH)
	GT_TEST_ALL=1 GT_TORCH_EXTENSION=0 $(BIN)/python -m pytest $(CALLING)
	GT_BACKEND=numpy $(BIN)/python -m pytest $(COMPUTING)
	GT_BACKEND=pytorch $(BIN)/python -m pytest $(COMPUTING)

coverage: build $(VENV)/.compare ## Run PyTorch's operator database on GT and write docs/coverage.md
	$(BIN)/python tests/coverage/run.py --write docs/coverage.md

torch-coverage: torch-extension ## Run PyTorch's tests for devices on the device cluster and write docs/coverage.md
	$(BIN)/python tests/torch_device/run.py --write docs/coverage.md

RELEASES := 2.13 2.14 2.15
torch-releases: wheel ## Run the tests of the device cluster with each release of PyTorch that it is made for
	for release in $(RELEASES); do \
	  room=$(VENV)/torch-$$release; \
	  $(PYTHON) -m venv $$room && $$room/bin/pip install --quiet --force-reinstall --no-deps dist/*.whl && \
	  $$room/bin/pip install --quiet "torch==$$release.*" torchvision $(TRAINERS) numpy pytest pytest-timeout expecttest && \
	  $$room/bin/python -m gt.torch.build && \
	  GT_TEST_ALL=1 GT_TEST_OPERATORS=0.02 $$room/bin/python -m pytest tests/torch_device || exit 1; \
	done

bench: torch-extension ## Measure side by side with PyTorch and write docs/benchmarks.md
	$(BIN)/python benches/run.py --write docs/benchmarks.md
	$(BIN)/python benches/sharding.py --write docs/benchmarks.md
	$(BIN)/python benches/hot.py --write docs/benchmarks.md
	$(BIN)/python benches/ground.py --write docs/benchmarks.md
	$(BIN)/python benches/watching.py --write docs/benchmarks.md
	$(BIN)/python benches/fairness.py --write docs/benchmarks.md
	$(BIN)/python benches/recovery.py --write docs/benchmarks.md
	$(BIN)/python benches/engines.py --threads 1 --write docs/benchmarks.md
	$(BIN)/python benches/products.py --write docs/benchmarks.md
	$(BIN)/python benches/models.py --write docs/benchmarks.md
	$(BIN)/python benches/torch_device.py --write docs/benchmarks.md

wheel: $(VENV)/.tools $(RUST_SOURCES) ## Build a wheel into dist/, which GPU machines take as it is
	. $(BIN)/activate && maturin build --release --quiet --out dist

gpu-tools: ## Install into PYTHON what the tests and benchmarks for GPUs need
	$(PYTHON) -m pip install --quiet torch 'numpy>=1.24' 'pytest>=8'

test-gpu: ## Run the tests for GPUs, with PYTHON and the wheel in dist/
	$(PYTHON) tests/gpu/run.py --no-benches

gpu: ## Run the tests for GPUs, measure beside PyTorch and write docs/benchmarks.md
	$(PYTHON) tests/gpu/run.py --write docs/benchmarks.md

ARM := aarch64-unknown-linux-gnu
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER := qemu-aarch64 -L /usr/aarch64-linux-gnu
# An emulated processor is slow enough as it is.
test-aarch64: export CARGO_PROFILE_DEV_OPT_LEVEL := 1
test-aarch64: ## Run the tests of engine and worker for 64-bit ARM, emulated (an hour)
	@if command -v qemu-aarch64 aarch64-linux-gnu-gcc > /dev/null && rustup target list --installed | grep -q $(ARM); then \
	  cargo test --target $(ARM) -p gt-ir -p gt-engine-native -p gt-worker; \
	else echo "SKIPPED: an emulator, a linker or the target is missing; make install-aarch64 installs them"; fi

install-aarch64: ## Install what test-aarch64 needs, on Debian
	rustup target add $(ARM)
	apt-get install --yes qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross

lint: build ## Check formatting, warnings and types
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check python tests examples benches docs simple_launch.py
	$(BIN)/ruff format --check python tests examples benches docs simple_launch.py
	$(BIN)/mypy

$(VENV)/.site: $(VENV)/.tools
	$(BIN)/pip install --quiet 'mkdocs>=1.6,<2' 'mkdocs-material>=9.5' 'mkdocstrings[python]>=1.0' rich
	@touch $@

site: build $(VENV)/.site ## Build the documentation into site/
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs: site ## Build the documentation into site/, and the Rust documentation
	RUSTDOCFLAGS="-A rustdoc::private_intra_doc_links" cargo doc --workspace --no-deps --exclude gt-python --quiet
	@echo "site/index.html and target/doc/gt/index.html"

pictures: build $(VENV)/.site ## Draw the pictures of the documentation anew
	$(BIN)/python docs/pictures.py

# The flags of libFuzzer's coverage, which work on a stable compiler.
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table

RUNS ?= 10000000
fuzz-decoders: export GT_FUZZ_DECODERS := 1
fuzz-decoders: LIMIT = -runs=$(RUNS)
fuzz: LIMIT = -max_total_time=60
fuzz: ## Fuzz decoders and dispatcher for a minute
fuzz-decoders: ## Fuzz the decoders of messages and journals, RUNS times
fuzz fuzz-decoders:
	cd fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --release --target x86_64-unknown-linux-gnu
	mkdir -p fuzz/found && fuzz/target/x86_64-unknown-linux-gnu/release/gt-fuzz \
		$(LIMIT) -max_len=4096 fuzz/found crates/gt-net/tests/corpus

check-targets: ## Type-check the crates for macOS and Windows, where their standard library can be had
	$(PYTHON) tests/check_targets.py

clean: ## Remove what was built
	cargo clean
	rm -rf $(VENV)

.PHONY: help build demo test test-all coverage torch-coverage torch-extension torch-releases soak repeat chaos chaos-processes bench wheel gpu-tools test-gpu gpu test-aarch64 install-aarch64 lint site docs pictures \
	fuzz fuzz-decoders check-targets clean
