#!/bin/sh
cut -d' ' -f1 /proc/uptime
tiertool probe latency -j --rounds 9 --timeout 120 >/out/latency.json
e=$?
cut -d' ' -f1 /proc/uptime
exit $e
