"""Export of trained models: CTranslate2, ONNX, Hugging Face."""
