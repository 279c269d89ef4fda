"""Draw attention as of 1964: curves fitted to noisy points, and the weights that every query gives to the points.

python examples/nadaraya_watson.py        (needs NumPy and matplotlib, no PyTorch)
"""

from pathlib import Path

from heedful.regression.estimator import NadarayaWatsonRegressor, toy_data


def main(folder: Path = Path()) -> None:
    from matplotlib.figure import Figure

    data = toy_data(seed=1)
    models = {
        "average pooling": NadarayaWatsonRegressor("constant"),
        "Gaussian, w = 1": NadarayaWatsonRegressor("gaussian", bandwidth=1.0),
        "Gaussian, learned w": NadarayaWatsonRegressor("gaussian", bandwidth="learned"),
    }
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    axes = figure.subplots(2, len(models), sharex="row", sharey="row", squeeze=False)
    image = None
    for column, (name, model) in enumerate(models.items()):
        model.fit(data.x, data.y)
        found = f" = {1 / model.bandwidth_:.2f}" if len(model.search_) else ""
        # The truth at the queries is known here: R^2 of the curve itself, not of noisy points.
        print(f"{name + found:<28}R^2 = {model.score(data.grid, data.truth):6.3f}")

        curves, heat_map = axes[:, column]
        curves.set(title=name + found, xlabel="x", xlim=(0, 5), ylim=(-1, 5))
        curves.plot(data.x[:, 0], data.y, "o", color="tab:orange", alpha=0.5, label="training points")
        curves.plot(data.grid[:, 0], data.truth, color="0.3", label="truth")
        curves.plot(data.grid[:, 0], model.predict(data.grid), "--", color="tab:blue", linewidth=2, label="predicted")

        weights = model.weights(data.grid)  # [query, key]
        image = heat_map.imshow(weights, cmap="Reds", aspect="auto", origin="lower", vmin=0.0, vmax=0.3)
        heat_map.set_xlabel("key: training points, left to right")
    axes[0, 0].legend(loc="lower center")
    axes[0, 0].set_ylabel("y")
    axes[1, 0].set_ylabel("query: x = 0, 0.1, ... 4.9")
    figure.colorbar(image, ax=axes[1, :], label="weight", extend="max")
    path = folder / "nadaraya_watson.png"
    figure.savefig(path, dpi=120)
    print(path)


if __name__ == "__main__":
    main()
