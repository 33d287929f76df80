// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pipeline/layer_workers.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "core/model/tensors.h"

namespace mla
{
namespace
{

/// Hands layers from the streaming thread to the workers, a bounded number at a time.
class LayerQueue
{
public:
    LayerQueue(std::size_t capacity, const std::function<Status(LayerActivations&)>& work)
        : m_capacity(capacity), m_work(work)
    {
    }

    /// Blocks while full; false when a worker has failed.
    bool push(LayerActivations layer)
    {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [&] { return m_error || m_waiting.size() < m_capacity; });
        if (m_error)
            return false;
        m_waiting.push_back(std::move(layer));
        m_changed.notify_all();
        return true;
    }
    void close()
    {
        const std::scoped_lock lock(m_mutex);
        m_closed = true;
        m_changed.notify_all();
    }
    void serve()
    {
        useOneThread();
        const torch::NoGradGuard noGrad;
        while (std::optional<LayerActivations> layer = pop()) {
            const LayerIndex index = layer->layer;
            Status status =
                guarded("layer " + std::to_string(index.value), [&] { return m_work(*layer); });
            if (!status)
                fail(index, std::move(status).error());
        }
    }
    std::optional<Error> takeError() { return std::move(m_error); }

private:
    std::optional<LayerActivations> pop()
    {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [&] { return m_error || m_closed || !m_waiting.empty(); });
        if (m_error || m_waiting.empty())
            return std::nullopt;
        LayerActivations layer = std::move(m_waiting.front());
        m_waiting.pop_front();
        m_changed.notify_all();
        return layer;
    }
    void fail(LayerIndex layer, Error error)
    {
        const std::scoped_lock lock(m_mutex);
        if (!m_error || layer < m_failed) {
            m_failed = layer;
            m_error = std::move(error);
        }
        m_changed.notify_all();
    }

    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<LayerActivations> m_waiting;
    std::size_t m_capacity;
    const std::function<Status(LayerActivations&)>& m_work;
    bool m_closed = false;
    LayerIndex m_failed;
    std::optional<Error> m_error;
};

int lastWanted(int layers, const std::function<bool(LayerIndex)>& wanted)
{
    int last = -1;
    for (int i = 0; i < layers; ++i)
        if (wanted(LayerIndex(i)))
            last = i;
    return last;
}

/// Streams up to the last wanted layer and passes the wanted ones on.
Status stream(JobContext& job, const Checkpoint& original, const CalibrationSet& set,
              torch::Device device, int streamWorkers,
              const std::function<bool(LayerIndex)>& wanted,
              const std::function<bool(LayerActivations)>& push)
{
    const int last = lastWanted(original.config().numHiddenLayers, wanted);
    if (last < 0)
        return {};
    MLA_TRY(activations, ActivationStream::create(original, set, device, streamWorkers));
    for (int i = 0; i <= last; ++i) {
        MLA_TRY(layer, activations.next(job));
        if (wanted(layer->layer) && !push(std::move(*layer)))
            return {};
        if (job.stopRequested())
            return cancelled();
    }
    return {};
}

} // namespace

Status forEachLayer(JobContext& job, const Checkpoint& original, const CalibrationSet& set,
                    torch::Device device, int workers,
                    const std::function<bool(LayerIndex)>& wanted,
                    const std::function<Status(LayerActivations&)>& work)
{
    useOneThread();
    LayerQueue queue(1, work);
    Status streamed;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < std::max(1, workers); ++i)
            threads.emplace_back([&] { queue.serve(); });
        streamed = guarded({}, [&] {
            return stream(job, original, set, device, 1, wanted,
                          [&](LayerActivations layer) { return queue.push(std::move(layer)); });
        });
        queue.close();
    }
    if (std::optional<Error> error = queue.takeError())
        return std::move(*error);
    return streamed;
}

} // namespace mla
