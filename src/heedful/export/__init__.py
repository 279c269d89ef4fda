"""Trained models written out for other engines: CTranslate2, ONNX, Hugging Face."""
