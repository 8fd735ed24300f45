"""Segments of a photograph: time beside k-means, and what merging like colours costs."""

from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

import fastmmc

from . import ratio

K = 4


class Photograph:
    """Four segments of scikit-learn's two photographs, 640 x 427 pixels each."""

    param_names = ("picture",)
    params = ("china.jpg", "flower.jpg")
    timeout = 600
    number, repeat, warmup_time = 1, (1, 5, 60.0), 0.0

    def setup(self, picture):
        self.image = load_sample_image(picture)
        fastmmc.segment(self.image[::16, ::16], K, random_state=0)

    def segment(self, max_representatives=5000):
        params = {"max_representatives": max_representatives}
        return fastmmc.segment(self.image, K, method_params=params, random_state=0)

    def time_segment(self, picture):
        self.segment()

    def peakmem_segment(self, picture):
        self.segment()

    def track_over_k_means(self, picture):
        """Ours over ten starts of k-means on the pixels."""
        pixels = self.image.reshape(-1, 3).astype(float)
        k_means = KMeans(K, n_init=10, random_state=0)
        k_means.fit(pixels[:1000])
        return ratio(3, self.segment, lambda: k_means.fit(pixels))

    def track_objective(self, picture):
        """Sum of squares within segments over that of training on every distinct colour."""
        return self.segment().objective / self.segment(None).objective

    def track_time_saved(self, picture):
        """Time over that of training on every distinct colour."""
        return ratio(1, self.segment, lambda: self.segment(None))
