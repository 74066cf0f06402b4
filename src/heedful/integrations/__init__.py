"""Other people's models and formats: transformers, the Hugging Face hub, ONNX, CTranslate2. Each needs an extra."""
