"""The image in which a fleet is planned on Kubernetes, for driver and executors: built as the operator's is, with Java,
and with Spark as pyspark brings it.
"""

import shutil
from pathlib import Path

from localplatform import cache
from localplatform.console import say
from localplatform.image import (
    BASE_PACKAGES,
    SOURCE,
    Image,
    base_image,
    build_archive,
    compiled,
    copy_source,
    install_packages,
    operator_source,
    package_pins,
)
from localplatform.machine import CHECKOUT

SPARK = CHECKOUT / "deploy" / "spark"
PROGRAMS = [SPARK / "entrypoint.py", SPARK / "fleet.py"]
REPOSITORY = "localhost/kafka-reassign-fleet"
JAVA_PACKAGES = f"{BASE_PACKAGES},openjdk-17-jre-headless"
EXTRAS = ("cli", "fleet")

# The largest parts of Spark that no fleet uses, by the names of their jars: streaming's state, Hive, machine learning,
# Spark Connect, the Scala shell, what Python need not read from an archive, and libraries for other systems.
LEFT_OUT = (
    *("rocksdbjni-*", "hive-exec-*", "hive-metastore-*", "spark-hive*", "datanucleus-*", "derby*", "breeze*", "spire*"),
    *("cats-kernel*", "spark-mllib_*", "spark-connect_*", "connect-repl", "scala-compiler-*", "spark-repl_*"),
    *("*-osx-*", "*-windows-*", "*-aarch_64.jar", "*-riscv64.jar"),
)


def spark_image() -> Image:
    """The image of this checkout's source; the tag is a hash of all that goes into it."""
    packages = spark_packages()
    pins: list[cache.Pin] = [SPARK / "Containerfile", str(base()), str(packages), str(compiled()), *PROGRAMS]
    for path in operator_source():
        pins += [str(path.relative_to(SOURCE)), path]
    tag = cache.key(pins)

    def build(place: Path) -> None:
        say("building the fleet's image")
        copy_source(place / "source")
        for program in PROGRAMS:
            shutil.copyfile(program, place / "source" / program.name)
        contexts = {"packages": packages, "compiled": compiled(), "source": place / "source"}
        archive = place / "image.tar"
        build_archive(SPARK / "Containerfile", f"{REPOSITORY}:{tag}", archive, base=base(), contexts=contexts)
        say(f"the fleet's image: {archive.stat().st_size >> 20} MiB")

    image = Image(tag, cache.entry("spark-image", [tag], build) / "image.tar", REPOSITORY)
    cache.keep_latest("spark-image", 2)
    return image


def base() -> Path:
    """The operator's base with Java."""
    return base_image(JAVA_PACKAGES)


def spark_packages() -> Path:
    """A folder with the project's Python packages, those of the fleet too, without what it does not use of Spark."""

    def build(place: Path) -> None:
        say("gathering the fleet's Python packages, with Spark: once per lock file, about a minute")
        install_packages(place, EXTRAS, built=["pyspark"])
        spark = place / "pyspark"
        for name in LEFT_OUT:
            for found in (spark / "jars").glob(name):
                _remove(found)
        for found in (spark / "examples", spark / "python" / "lib" / "pyspark.zip"):
            _remove(found)

    place = cache.entry("spark-packages", [*package_pins(EXTRAS), *LEFT_OUT], build)
    cache.keep_latest("spark-packages", 2)
    return place


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
