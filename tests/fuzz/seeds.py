#!/usr/bin/env python3
"""Writes those inputs to begin with that are parts of larger files of the tree: tests/fuzz/corpus/*/part-*."""
import json
import pathlib

fuzz = pathlib.Path(__file__).resolve().parent
policies = fuzz.parent.parent / 'policies'


def write(harness, name, data):
    folder = fuzz / 'corpus' / harness
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f'part-{name}').write_bytes(data if isinstance(data, bytes) else data.encode())


def first_rows(table, rows):
    return ''.join((policies / 'sharing/data' / table).read_text().splitlines(True)[:1 + rows])


def shorter(value):
    """Of trees and points of a predictor the first ones do."""
    if isinstance(value, list):
        return [shorter(each) for each in value]
    if not isinstance(value, dict):
        return value
    value = {key: shorter(each) for key, each in value.items()}
    for key in {'trees', 'rows'} & value.keys():
        value[key] = value[key][:2]
    if value.get('kind') == 'kriging':
        value['weights'] = value['weights'][:2]
    return value


for table in ('pairs.csv', 'pairs-h200.csv', 'trainings.csv', 'trainings-h200.csv'):
    write('predictor_table', table, first_rows(table, 2))
predictor = shorter(json.loads((policies / 'weights/job-predictor.json').read_text()))
write('job_predictor', 'whole', json.dumps(predictor, separators=(',', ':')))
del predictor['gpu']
write('job_predictor', 'cores', json.dumps(predictor, separators=(',', ':')))
