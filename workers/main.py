"""The app that ``celery -A workers.main`` finds: made from the environment, in worker, beat and Flower."""

from __future__ import annotations

from store.settings import read_settings
from workers.celery_app import create_celery

celery = create_celery(read_settings())
