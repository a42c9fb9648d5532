#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Can a call of the program's be refused without a word?

    scripts/refusals.py check      the tree, see below
    scripts/refusals.py self-test  the check fails where it must

1. Errors leave libibverbs and librdmacm by few functions (vb_front_errno(),
   rcm_fail() and their kin), which tell a refusal that nothing else has told.
   So no other line of front/verbs and front/rdmacm may return an errno or set
   it, but for those listed in ERRNO with the reason.
2. Each function that these libraries export, and each that the header's inline
   functions call by the table of a context, has a planted mistake in
   tests/programs/mistakes*.c, or a row in CALLS with the reason.

Each finding is one line; the exit status is 1 when there is one.
"""
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')

SETS = re.compile(r'\breturn E[A-Z0-9]+;|\breturn errno = |^\s*errno = '
                  r'(?!0;)|\breturn -1;')
FUNCTION = re.compile(r'^[A-Za-z_].*?\b(\w+)\)?\((?!.*;\s*$)')

# file, function -> why its errno needs no sentence
ERRNO = {
    ('front/verbs/post.c', 'vb_wqe_refuse_state'): 'it has told the state',
    ('front/verbs/post.c', 'vb_wqe_refuse_full'): 'it has told the queue',
    ('front/verbs/post.c', 'vb_front_post_wq_recv'): 'it has told the state',
    ('front/verbs/post.c', 'vb_front_post_srq_ops'): 'it has told the queue',
    ('front/verbs/query.c', 'no_port'): 'it has told the port',
    ('front/verbs/query.c', 'no_entry'): 'it has told the index',
    ('front/verbs/query.c', 'find_gid'): 'its callers tell',
    ('front/verbs/context.c', 'ibv_close_device'): 'vb_front_unknown() tells',
    ('front/verbs/private.c', 'vb_private_refuse'):
        'for providers, which no program calls',
    ('front/verbs/private.c', 'vb_private_no_file'):
        'for providers, which no program calls',
    ('front/verbs/xrc.c', 'lock_inode'): 'no public function',
    ('front/verbs/names.c', 'ibv_rate_to_mult'): 'a conversion',
    ('front/verbs/names.c', 'ibv_rate_to_mbps'): 'a conversion',
    ('front/verbs/names.c', 'ibv_read_sysfs_file'):
        'asks for files that may not be there',
    ('front/rdmacm/rdmacm.h', 'rcm_pass'): 'for errors that were told',
    ('front/rdmacm/iw_setup.c', 'read_frame'): 'no public function',
    ('front/verbs/front.h', 'vb_front_errno_of'): 'it is the way out',
}
# file -> why its functions, which return -1 where another one has told
PASSES = {
    'front/rdmacm/ep.c': 'it calls public functions',
    'front/rdmacm/qp.c': 'it calls public functions',
    'front/rdmacm/event.c': 'it calls public functions',
    'front/rdmacm/id.c': 'it calls public functions',
    'front/rdmacm/iw.c': 'no public function',
}

DESTROYS = 'refuses an object that is none, as ibv_dereg_mr does'
WAITS = 'waits; its errors are of the system'
NEVER = 'cannot fail'
# function -> why no mistake is planted with it
CALLS = {
    **dict.fromkeys('''
        ibv_ack_async_event ibv_ack_cq_events ibv_dofork_range
        ibv_dontfork_range ibv_event_type_str ibv_fork_init
        ibv_free_device_list ibv_get_device_guid ibv_get_device_index
        ibv_get_device_name ibv_get_sysfs_path ibv_is_fork_initialized
        ibv_node_type_str ibv_port_state_str ibv_qp_to_qp_ex ibv_query_device
        ibv_query_ece ibv_query_qp_data_in_order ibv_query_rt_values
        ibv_rate_to_mbps ibv_rate_to_mult ibv_register_driver
        ibv_unimport_dm ibv_unimport_mr ibv_unimport_pd ibv_wc_status_str
        mbps_to_ibv_rate mult_to_ibv_rate ibv_copy_ah_attr_from_kern
        ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern
        ibv_copy_qp_attr_from_kern ibv_req_notify_cq ibv_alloc_null_mr
        rdma_destroy_ep rdma_destroy_event_channel rdma_destroy_id
        rdma_destroy_qp rdma_destroy_srq rdma_event_str rdma_free_devices
        rdma_freeaddrinfo rdma_get_dst_port rdma_get_src_port
        raccept_events'''.split(), NEVER),
    **dict.fromkeys('''
        ibv_close_device ibv_dealloc_mw ibv_dealloc_pd ibv_destroy_cq
        ibv_close_xrcd ibv_query_srq ibv_destroy_flow ibv_destroy_counters
        ibv_destroy_rwq_ind_table'''.split(), DESTROYS),
    **dict.fromkeys('ibv_get_async_event ibv_get_cq_event ibv_poll_cq'.split(),
                    WAITS),
    **dict.fromkeys('''
        ibv_alloc_pd ibv_create_comp_channel ibv_get_device_list
        rdma_create_event_channel rdma_get_devices'''.split(),
                    'fails only when memory or descriptors run out'),
    **dict.fromkeys('ibv_alloc_td ibv_attach_counters_point_flow'.split(),
                    'refuses only what this device lacks'),
    'ibv_read_sysfs_file': 'asks for files that may not be there',
    'ibv_query_device_ex': 'the header checks its comp_mask',
}
# Names of versions that programs' headers do not declare, or of sockets, whose
# errors are those of socket(7).
OTHERS = re.compile(r'^(r[a-oq-z]\w*|rpoll|rpause|rdma_(write_cm_event|'
                    r'resolve_addrinfo|query_addrinfo)|_?verbs_\w+|'
                    r'_?ibv_cmd\w*|vb_\w+|execute_ioctl|'
                    r'ibv_(dmabuf_heap_\w+|query_gid_type|wr_opcode_str|'
                    r'read_ibdev_sysfs_file)|__\w+|_ibv_query_comp\w+|ibv_\w*(comp_cntr|dmah|dmabuf_fd|'
                    r'_buf)\w*|ibv_query_port_speed|ibv_reg_mr_ex|'
                    r'ibv_(get_device_fd|private|xsrq)\w*)$')
TABLE = re.compile(r'^\tc->v\.\w+ = vb_front_(\w+);|'
                   r'^\t\.(?!_)\w+ = vb_front_(\w+),', re.M)
ALIASES = {'ibv_create_rwq_table': 'ibv_create_rwq_ind_table',
           'ibv_destroy_rwq_table': 'ibv_destroy_rwq_ind_table',
           'ibv_attach_counters': 'ibv_attach_counters_point_flow',
           '_ibv_query_gid_ex': 'ibv_query_gid_ex',
           '_ibv_query_gid_table': 'ibv_query_gid_table'}


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def silent_lines(path, text):
    where = ''
    for number, line in enumerate(text.split('\n'), 1):
        name = FUNCTION.match(line)
        if name:
            where = name.group(1)
        if not SETS.search(line) or (path, where) in ERRNO:
            continue
        if 'return -1;' in line and path in PASSES:
            continue
        yield (f'{path}:{number}: {where}() sets an error past '
               'vb_front_errno(), rcm_fail() and their kin')


def exported(maps, context):
    names = {ALIASES.get(n, n) for text in maps
             for n in re.findall(r'^\s+(\w+);', text, re.M)}
    for groups in TABLE.findall(context):
        name = 'ibv_' + ''.join(groups)
        names.add(ALIASES.get(name, name))
    return {n for n in names if not OTHERS.match(n)}


def uncovered(names, tests):
    for name in sorted(names):
        called = re.search(r'\b%s\(' % name, tests)
        if not called and name not in CALLS:
            yield (f'{name}: no planted mistake calls it '
                   '(tests/programs/mistakes*.c)')


def check():
    found = []
    for room in 'front/verbs', 'front/rdmacm':
        for path in sorted(glob.glob(os.path.join(ROOT, room, '*.[ch]'))):
            path = os.path.relpath(path, ROOT)
            found += silent_lines(path, read(path))
    tests = ''.join(open(p, encoding='utf-8').read() for p in glob.glob(
        os.path.join(ROOT, 'tests/programs/mistakes*.c')))
    tests += read('tests/programs/bad_input_sides.c')
    maps = [read('front/verbs/libibverbs.map'),
            read('front/rdmacm/librdmacm.map')]
    found += uncovered(exported(maps, read('front/verbs/context.c')), tests)
    return found


def self_test():
    bad = 'int ibv_x(void)\n{\n\treturn EINVAL;\n}\n'
    good = 'int ibv_x(void)\n{\n\treturn vb_front_errno(-EINVAL);\n}\n'
    names = exported(['V {\n\tglobal:\n\t\tibv_x;\n};'],
                     '\tc->v.y = vb_front_y;\n')
    cases = (
        (list(silent_lines('a.c', bad)), 1),
        (list(silent_lines('a.c', good)), 0),
        (list(silent_lines('a.c', bad.replace('return E', 'errno = E'))), 1),
        (sorted(names), 2),
        (list(uncovered(names, 'ibv_x(1)')), 1),
        (list(uncovered(names, 'ibv_x(1) ibv_y(2)')), 0),
    )
    return [f'self-test: case {i}: {found}'
            for i, (found, n) in enumerate(cases) if len(found) != n]


def main():
    how = sys.argv[1] if len(sys.argv) == 2 else ''
    if how not in ('check', 'self-test'):
        sys.exit(__doc__)
    problems = check() if how == 'check' else self_test()
    for p in problems:
        print(p)
    sys.exit(1 if problems else 0)


if __name__ == '__main__':
    main()
