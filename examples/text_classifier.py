"""A text classifier as a scikit-learn estimator: fit, score, probabilities, cross-validation and pickle.

pip install 'heedful[train,sklearn]'
python examples/text_classifier.py
"""

import pickle

from sklearn.model_selection import cross_val_score

from heedful.sklearn import TextClassifier
from heedful.synthetic import reviews


def main(num_texts: int = 200, settings: dict[str, object] | None = None) -> None:
    texts, labels = map(list, zip(*reviews.generate(num_texts, seed=1), strict=True))
    classifier = TextClassifier(settings=settings).fit(texts[50:], labels[50:])
    print(f"accuracy on 50 new texts: {classifier.score(texts[:50], labels[:50]):.2f}")
    for text, shares in zip(texts[:3], classifier.predict_proba(texts[:3]), strict=True):
        print(text, dict(zip(classifier.classes_, shares.round(3), strict=True)))
    print("after pickle:", pickle.loads(pickle.dumps(classifier)).predict(texts[:3]))
    print("cross-validated:", cross_val_score(TextClassifier(settings=settings), texts, labels, cv=2).round(2))


if __name__ == "__main__":
    main()
