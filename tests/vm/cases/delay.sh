#!/bin/sh
tiertool probe latency -j --rounds 9 --timeout 60 >/out/latency.json
