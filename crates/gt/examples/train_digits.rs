//! The training of `examples/train_digits.py`, with the Rust API.
//!
//! `cargo run --release --example train_digits`, or with `-- HOST:PORT` on a server's workers.

use gt::nn::{Linear, Module, cross_entropy_loss};
use gt::optim::Sgd;
use gt::{Session, Tensor, no_grad};

const BATCH: usize = 64;
const EPOCHS: usize = 30;

struct Network {
    hidden: Linear,
    output: Linear,
}

impl Module for Network {
    fn forward(&self, pixels: &Tensor) -> gt::Result<Tensor> {
        self.output.forward(&self.hidden.forward(pixels)?.relu()?)
    }

    fn parameters(&self) -> Vec<Tensor> {
        [self.hidden.parameters(), self.output.parameters()].concat()
    }
}

/// Images of 64 pixels from 0 to 1, and which digit each is.
fn load() -> (Vec<f32>, Vec<i64>) {
    let text = include_str!("../../../examples/digits.csv");
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let numbers: Vec<i64> =
            line.split(',').map(|number| number.parse().expect("a whole number")).collect();
        images.extend(numbers[..64].iter().map(|&pixel| pixel as f32 / 16.0));
        labels.push(numbers[64]);
    }
    (images, labels)
}

fn main() -> gt::Result<()> {
    let session: Session = match std::env::args().nth(1) {
        Some(address) => gt::connect(&address, None, false)?,
        None => gt::embedded(1)?,
    };
    session.manual_seed(0);
    let (images, labels) = load();
    let count = labels.len();
    let images = Tensor::from_slice(&session, &images, &[count, 64])?;
    let labels = Tensor::from_slice(&session, &labels, &[count])?;
    // One in five is for testing.
    let places = |test: bool| -> gt::Result<Tensor> {
        let chosen: Vec<i64> = (0..count as i64).filter(|n| (n % 5 == 0) == test).collect();
        Tensor::from_slice(&session, &chosen, &[chosen.len()])
    };
    let (train, test) = (places(false)?, places(true)?);
    let (train_images, train_labels) =
        (images.index_select(0, &train)?, labels.index_select(0, &train)?);

    let model =
        Network { hidden: Linear::new(&session, 64, 128)?, output: Linear::new(&session, 128, 10)? };
    let mut optimizer = Sgd::new(model.parameters(), 0.1, 0.9);
    let samples = train_labels.shape()[0];
    for epoch in 1..=EPOCHS {
        let mut last = None;
        for start in (0..samples).step_by(BATCH) {
            let size = BATCH.min(samples - start);
            let batch = train_images.narrow(0, start, size)?;
            let loss =
                cross_entropy_loss(&model.forward(&batch)?, &train_labels.narrow(0, start, size)?)?;
            loss.backward()?;
            optimizer.step()?;
            optimizer.zero_grad()?;
            last = Some(loss);
        }
        if let Some(loss) = last.filter(|_| epoch % 10 == 0) {
            println!("epoch {epoch}: loss {:.4}", loss.item()?.as_f64());
        }
    }
    let accuracy = no_grad(|| -> gt::Result<f64> {
        let scores = model.forward(&images.index_select(0, &test)?)?;
        let right = scores.argmax(&[1], false)?.eq(&labels.index_select(0, &test)?)?;
        right.cast(gt::DType::F32)?.mean(&[], false)?.item().map(gt::Scalar::as_f64)
    })?;
    println!("test accuracy: {:.1} %", accuracy * 100.0);
    assert!(accuracy >= 0.97, "the training reaches at least 97 %");
    Ok(())
}
