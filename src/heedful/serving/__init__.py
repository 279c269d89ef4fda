"""HTTP server: the LibreTranslate, DeepL and DeepLX interfaces over loaded models, and its guards."""
