/* SPDX-License-Identifier: BSD-2-Clause */
/* ipoib/cm_ask: the thread that asks the connection manager. The test plays the
 * manager, which may be stopped, or refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the headers above
#include <cmocka.h>

#include <poll.h>

#include "ipoib/cm_ask.c"

/* milliseconds: far more than a thread needs, even on a busy machine */
#define PATIENCE_MS 30000

static struct {
	pthread_mutex_t lock;
	pthread_cond_t goes_on;
	bool stopped;
	int refuses; /* errno of the next address; 0: none */
	unsigned asked, made, destroyed;
} manager = { .lock = PTHREAD_MUTEX_INITIALIZER,
	      .goes_on = PTHREAD_COND_INITIALIZER };
static struct rdma_event_channel channel;
static struct cm_asker *asker;
/* an asker whose thread still waits after the interface has ended */
static struct cm_asker *volatile left;

int rdma_create_id(struct rdma_event_channel *at, struct rdma_cm_id **id,
		   void *context, enum rdma_port_space ps)
{
	*id = calloc(1, sizeof(**id));
	assert_non_null(*id);
	(*id)->channel = at;
	manager.made++;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	manager.destroyed++;
	free(id);
	return 0;
}

/* The fake manager's answer: waits while the manager is stopped. */
static int answer_of_manager(void)
{
	int rc;

	pthread_mutex_lock(&manager.lock);
	manager.asked++;
	pthread_cond_broadcast(&manager.goes_on);
	while (manager.stopped)
		pthread_cond_wait(&manager.goes_on, &manager.lock);
	rc = manager.refuses;
	manager.refuses = 0;
	pthread_mutex_unlock(&manager.lock);
	errno = rc;
	return rc ? -1 : 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from,
		      struct sockaddr *to, int ms)
{
	return answer_of_manager();
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *to)
{
	id->channel = to;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *from)
{
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	return answer_of_manager();
}

static void stop(bool stopped)
{
	pthread_mutex_lock(&manager.lock);
	manager.stopped = stopped;
	pthread_cond_broadcast(&manager.goes_on);
	pthread_mutex_unlock(&manager.lock);
}

/* Wait until the asker's thread has asked the manager @count times. */
static void await_question(unsigned count)
{
	pthread_mutex_lock(&manager.lock);
	while (manager.asked < count)
		pthread_cond_wait(&manager.goes_on, &manager.lock);
	pthread_mutex_unlock(&manager.lock);
}

static int begin(void **state)
{
	manager.asked = manager.made = manager.destroyed = 0;
	stop(false);
	asker = ipoib_asker_start(&channel);
	return !asker;
}

static int end(void **state)
{
	return asker ? !ipoib_asker_end(asker) : 0;
}

static bool ask(enum cm_question_kind kind, uint32_t query)
{
	const struct cm_question q = { .kind = kind, .query = query };

	return ipoib_asker_ask(asker, &q);
}

static struct cm_question answer(void)
{
	struct pollfd p = { .fd = ipoib_asker_fd(asker), .events = POLLIN };
	struct cm_question q;

	while (!ipoib_asker_take(asker, &q))
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	return q;
}

static void answers_come_in_order(void **state)
{
	struct cm_question q;

	assert_true(ask(CM_ASK_LISTEN, 0));
	assert_true(ask(CM_ASK_PATH, 7));
	q = answer();
	assert_int_equal(q.kind, CM_ASK_LISTEN);
	assert_ptr_equal(q.id->channel, &channel);
	rdma_destroy_id(q.id);
	q = answer();
	assert_int_equal(q.kind, CM_ASK_PATH);
	assert_int_equal(q.query, 7);
	assert_ptr_equal(q.id->channel, &channel);
	rdma_destroy_id(q.id);
	assert_false(ipoib_asker_take(asker, &q));
}

static void a_refusal_has_no_id(void **state)
{
	struct cm_question q;

	manager.refuses = EHOSTUNREACH;
	assert_true(ask(CM_ASK_PATH, 1));
	q = answer();
	assert_null(q.id);
	assert_int_equal(q.error, EHOSTUNREACH);
	assert_int_equal(manager.made, manager.destroyed);
}

/* While the manager is stopped questions wait, up to a limit, and can be
 * withdrawn before they are asked. */
static void a_stopped_manager_holds_up_nobody(void **state)
{
	struct cm_question q;

	stop(true);
	for (uint32_t i = 0; i < CM_QUESTIONS; i++)
		assert_true(ask(CM_ASK_PATH, i));
	assert_false(ask(CM_ASK_PATH, CM_QUESTIONS));
	await_question(1);
	assert_false(ipoib_asker_take(asker, &q));
	for (uint32_t i = 0; i < CM_QUESTIONS; i++)
		ipoib_asker_withdraw(asker, i);
	stop(false);
	q = answer();
	/* question 0 was being asked, so it could not be withdrawn */
	assert_non_null(q.id);
	rdma_destroy_id(q.id);
	for (uint32_t i = 1; i < CM_QUESTIONS; i++) {
		q = answer();
		assert_int_equal(q.query, i);
		assert_int_equal(q.error, ECANCELED);
		assert_null(q.id);
	}
	assert_int_equal(manager.asked, 1);
}

/* The interface ends without waiting for the manager. */
static void ends_while_the_manager_is_stopped(void **state)
{
	stop(true);
	assert_true(ask(CM_ASK_PATH, 1));
	await_question(1);
	assert_false(ipoib_asker_end(asker));
	left = asker;
	asker = NULL;
	stop(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answers_come_in_order, begin,
						end),
		cmocka_unit_test_setup_teardown(a_refusal_has_no_id, begin,
						end),
		cmocka_unit_test_setup_teardown(
			a_stopped_manager_holds_up_nobody, begin, end),
		cmocka_unit_test_setup_teardown(
			ends_while_the_manager_is_stopped, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
