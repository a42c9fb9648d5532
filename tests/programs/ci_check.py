#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The files of YAML in ci/: what they must have, and what a runner takes of them.

    ci_check.py CI          a line for each case
    ci_check.py CI steps    the shell steps of the GitHub action
    ci_check.py CI gitlab   the shell lines of the GitLab job
"""
import re
import sys

import yaml


def load(ci, name):
    with open(f'{ci}/{name}', encoding='utf-8') as f:
        return yaml.safe_load(f)


def action_is_good(ci):
    a = load(ci, 'github/action.yml')
    steps = a['runs']['steps']
    text = ''.join(s['run'] for s in steps)
    used = set(re.findall(r'\$\{\{ inputs\.(\w+) \}\}', str(a)))
    return (a['runs']['using'] == 'composite' and 'sudo' not in text and
            all(s['shell'] == 'bash' for s in steps) and
            # An input is never part of a script, only of the environment.
            '${{' not in text and used == set(a['inputs']))


def gitlab_is_good(ci):
    jobs = load(ci, 'gitlab.yml')
    return (jobs['example']['extends'] in jobs and
            'sudo' not in str(jobs) and jobs['.verbena']['before_script'])


def pod_is_good(ci):
    spec = load(ci, 'kubernetes.yaml')['spec']
    volumes = {v['name'] for v in spec['volumes']}
    containers = spec['initContainers'] + spec['containers']
    return (spec['securityContext']['runAsNonRoot'] and
            all(c['securityContext'] == {
                'allowPrivilegeEscalation': False,
                'readOnlyRootFilesystem': True,
                'capabilities': {'drop': ['ALL']}} for c in containers) and
            all(m['name'] in volumes for c in containers
                for m in c['volumeMounts']) and
            not any(k in spec for k in ('hostNetwork', 'hostPID', 'hostIPC')))


def main():
    ci = sys.argv[1]
    what = sys.argv[2] if len(sys.argv) > 2 else ''
    if what == 'steps':
        for step in load(ci, 'github/action.yml')['runs']['steps']:
            print(step['run'].rstrip())
        return
    if what == 'gitlab':
        jobs = load(ci, 'gitlab.yml')
        print('\n'.join(jobs['.verbena']['before_script'] +
                        jobs['example']['script']))
        return
    for name, good in (('the GitHub action', action_is_good),
                       ('the GitLab job', gitlab_is_good),
                       ('the Kubernetes pod', pod_is_good)):
        print('ok' if good(ci) else 'not ok', f'ci: {name} is as it must be')


main()
