// SPDX-License-Identifier: BSD-2-Clause
// Collective operations by Gloo's ibverbs transport, results compared:
//
//	gloo_test DEVICE RANK SIZE DIRECTORY [dies]
//
// SIZE such programs meet in the directory. With "dies" the last one ends
// after the first operation without a word, and the others go on until an
// exception ends them. Prints "ok NAME" or "not ok NAME" for each operation.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <vector>

#include <gloo/allgather_ring.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/pairwise_exchange.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

namespace
{

using Meeting = std::shared_ptr<gloo::rendezvous::Context>;
using Words = std::vector<uint64_t>;

bool failed;

void say(bool good, const char *what, size_t count)
{
	failed |= !good;
	std::printf("%s %s, %zu words\n", good ? "ok" : "not ok", what, count);
	std::fflush(stdout);
}

// What rank has at place i before an operation.
uint64_t word(int rank, size_t i)
{
	return (rank + 1) * 1000003ull + i * 7919;
}

// An algorithm and what it works on stay until the program ends. When it has
// run, its last send may be under way, of which only the device's thread hears
// the end, and a buffer of Gloo's must not be destroyed before.
std::list<Words> memory;
std::list<std::unique_ptr<gloo::Algorithm>> algorithms;

template <typename Algorithm, typename... Arguments>
void run(Arguments &&...arguments)
{
	algorithms.emplace_back(
		new Algorithm(std::forward<Arguments>(arguments)...));
	algorithms.back()->run();
}

Words &fresh(size_t count)
{
	memory.emplace_back(count);
	return memory.back();
}

Words &mine(const Meeting &all, size_t count)
{
	Words &words = fresh(count);

	for (size_t i = 0; i < count; i++)
		words[i] = word(all->rank, i);
	return words;
}

template <template <typename> class Algorithm>
void sums(const char *what, const Meeting &all, size_t count)
{
	Words &words = mine(all, count);
	bool good = true;

	run<Algorithm<uint64_t>>(all, std::vector<uint64_t *>{ words.data() },
				 count);
	for (size_t i = 0; i < count; i++) {
		uint64_t sum = 0;

		for (int rank = 0; rank < all->size; rank++)
			sum += word(rank, i);
		good &= words[i] == sum;
	}
	say(good, what, count);
}

template <typename T> using Ring = gloo::AllreduceRing<T>;
template <typename T> using Chunked = gloo::AllreduceRingChunked<T>;
template <typename T> using Halving = gloo::AllreduceHalvingDoubling<T>;

void gathers(const Meeting &all, size_t count)
{
	Words &words = mine(all, count), &out = fresh(count * all->size);
	bool good = true;

	run<gloo::AllgatherRing<uint64_t>>(
		all, std::vector<const uint64_t *>{ words.data() }, out.data(),
		count);
	for (int rank = 0; rank < all->size; rank++)
		for (size_t i = 0; i < count; i++)
			good &= out[rank * count + i] == word(rank, i);
	say(good, "allgather", count);
}

void broadcasts(const Meeting &all, size_t count)
{
	for (int root = 0; root < all->size; root++) {
		Words &words = mine(all, count);
		bool good = true;

		run<gloo::BroadcastOneToAll<uint64_t>>(
			all, std::vector<uint64_t *>{ words.data() }, count,
			root);
		for (size_t i = 0; i < count; i++)
			good &= words[i] == word(root, i);
		say(good, "broadcast", count);
	}
}

void operations(const Meeting &all, size_t count)
{
	sums<Ring>("allreduce, ring", all, count);
	sums<Chunked>("allreduce, chunked ring", all, count);
	sums<Halving>("allreduce, halving and doubling", all, count);
	gathers(all, count);
	broadcasts(all, count);
	run<gloo::BarrierAllToAll>(all);
	if (all->size % 2 == 0) {
		// It moves bytes of its own, of which nobody sees the values.
		run<gloo::PairwiseExchange>(all, count * sizeof(uint64_t), 1);
		say(true, "pairwise exchange", count);
	}
}

// The last one ends; the others go on until they are told. Gloo's thread hears
// of a send that failed and throws where nobody catches, so it aborts; one
// that only waits to receive has its timeout. All have each other's regions
// before: one that waits for a region waits for ever, with Gloo's own lock.
void one_dies(const Meeting &all)
{
	run<Ring<uint64_t>>(
		all, std::vector<uint64_t *>{ mine(all, 4096).data() }, 4096);
	run<gloo::BarrierAllToAll>(all);
	if (all->rank == all->size - 1) {
		usleep(300000);
		_exit(0);
	}
	usleep(800000);
	for (;;)
		algorithms.front()->run();
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 5) {
		std::fprintf(stderr, "usage: gloo_test DEVICE RANK SIZE "
				     "DIRECTORY [dies]\n");
		return 2;
	}
	gloo::transport::ibverbs::attr attr{ argv[1], 1, 0 };
	try {
		auto device = gloo::transport::ibverbs::CreateDevice(attr);
		gloo::rendezvous::FileStore store(argv[4]);
		auto all = std::make_shared<gloo::rendezvous::Context>(
			std::atoi(argv[2]), std::atoi(argv[3]));

		all->setTimeout(std::chrono::seconds(argc > 5 ? 3 : 30));
		all->connectFullMesh(store, device);
		if (argc > 5)
			one_dies(all);
		else
			for (size_t count : { 1u, 100u, 4096u, 1u << 20 })
				operations(all, count);
	} catch (const std::exception &error) {
		std::printf("not ok exception: %s\n", error.what());
		return 1;
	}
	// Peers may still ask for the last answers.
	usleep(300000);
	_exit(failed);
}
