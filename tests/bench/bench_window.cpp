// SPDX-License-Identifier: GPL-3.0-or-later
// How the window keeps up with large studies, offscreen on this machine:
//   frames of panning and zooming through 10 curves of 500,000 points (aim: none over 50 ms),
//   opening a study of 10 runs of 80 layers, from the file to all pages drawn (aim: below 1 s),
//   keys while a job computes on all cores, from the press to all pages drawn (aim: 100 ms).
// Prints; asserts nothing. QT_QPA_PLATFORM=offscreen build/tests/bench_window
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

#include <QApplication>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <qcustomplot.h>

#include "app/workbench/main_window.h"
#include "core/store/study.h"
#include "widgets/common/theme.h"
#include "widgets/plots/plot_view.h"

using namespace mla;
using namespace mla::ui;

namespace
{

double milliseconds(const std::chrono::steady_clock::time_point begun)
{
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun)
        .count();
}

void report(const char* what, std::vector<double> times)
{
    if (times.empty()) {
        std::printf("%-28s nothing measured\n", what);
        return;
    }
    std::ranges::sort(times);
    std::printf("%-28s %3zu frames, median %6.1f ms, worst %6.1f ms\n", what, times.size(),
                times[times.size() / 2], times.back());
}

void benchFrames()
{
    constexpr int curves = 10, points = 500'000, frames = 60;
    Figure figure;
    figure.id = "bench";
    figure.x.label = "Step";
    figure.y.label = "Loss";
    for (int c = 0; c < curves; ++c) {
        Series series;
        series.name = "curve " + std::to_string(c);
        for (int i = 0; i < points; ++i) {
            series.x.push_back(i);
            series.y.push_back(c + std::sin(i * 0.001 * (c + 1)) + 0.3 * std::cos(i * 1.7));
        }
        figure.series.push_back(std::move(series));
    }
    PlotView view;
    view.resize(1200, 800);
    view.show();
    view.setFigure(figure);
    QApplication::processEvents();
    QCustomPlot* plot = view.plot();
    const QCPRange whole = plot->xAxis->range();
    std::vector<double> pan, zoom;
    for (int frame = 0; frame < frames; ++frame) {
        const auto begun = std::chrono::steady_clock::now();
        plot->xAxis->moveRange(whole.size() / 200);
        plot->replot(QCustomPlot::rpImmediateRefresh);
        pan.push_back(milliseconds(begun));
    }
    plot->xAxis->setRange(whole);
    for (int frame = 0; frame < frames; ++frame) {
        const auto begun = std::chrono::steady_clock::now();
        plot->xAxis->scaleRange(0.85);
        plot->replot(QCustomPlot::rpImmediateRefresh);
        zoom.push_back(milliseconds(begun));
    }
    report("pan, 10 x 500,000 points", pan);
    report("zoom, 10 x 500,000 points", zoom);
}

StudyData largeStudy()
{
    constexpr int runs = 10, layers = 80, steps = 60, values = 256, heads = 8, pairs = 64;
    StudyData study;
    study.checkpoints.push_back({"big", "/models/big", "f", "{}"});
    for (int r = 0; r < runs; ++r) {
        RunRecord run;
        run.id = "big/run" + std::to_string(r) + (r == 0 ? "/converted" : "/functional");
        run.variant = r == 0 ? "converted" : "functional";
        run.parent = r == 0 ? "" : "big/run0/converted";
        run.converter = "transmla";
        run.checkpoint = "big";
        run.kvLoraRank = 448;
        run.qkRopeHeadDim = 64;
        run.settingsJson = R"({"steps": 60})";
        for (int l = 0; l < layers; ++l) {
            LayerRecord layer;
            layer.layer = LayerIndex(l);
            LossCurve curve;
            for (int s = 0; s <= steps; ++s) {
                curve.step.push_back(s);
                curve.train.push_back(std::exp(-s / 20.0));
                curve.heldout.push_back(s % 5 ? std::nan("") : std::exp(-s / 25.0));
                curve.learningRate.push_back(1e-3);
            }
            layer.loss = std::move(curve);
            SpectrumRecord spectrum;
            RopeRecord rope;
            for (int v = 0; v < values; ++v) {
                spectrum.weights.push_back(std::exp(-v / 40.0));
                spectrum.activations.push_back(std::exp(-v / 30.0));
            }
            spectrum.rank = 128;
            spectrum.retainedEnergy = 0.97;
            rope.heads = heads;
            rope.pairs = pairs;
            for (int v = 0; v < heads * pairs; ++v) {
                rope.keyEnergy.push_back(1);
                rope.keptEnergy.push_back(0.5);
                rope.scoreEnergy.push_back(1);
            }
            rope.distance = {1, 4, 16, 64};
            rope.scoreResidual = {0.1, 0.2, 0.3, 0.4};
            layer.spectrum = std::move(spectrum);
            layer.rope = std::move(rope);
            layer.before = FidelityRecord{0.5, 0.9, 0.1};
            layer.after = FidelityRecord{0.2, 0.98, 0.05};
            layer.complete = true;
            run.layers.push_back(std::move(layer));
        }
        study.runs.push_back(std::move(run));
    }
    return study;
}

bool open(MainWindow& window, const QString& path)
{
    window.openStudy(path);
    while (!window.document().isLoaded() && window.messages().texts().isEmpty())
        QApplication::processEvents(QEventLoop::AllEvents, 5);
    return window.document().isLoaded();
}

bool benchOpening(const QString& path)
{
    MainWindow window(coreServices());
    window.show();
    QApplication::processEvents();
    const auto begun = std::chrono::steady_clock::now();
    if (!open(window, path))
        return false;
    const double read = milliseconds(begun);
    QApplication::processEvents();
    std::printf("open 10 runs x 80 layers      read %.0f ms, all drawn after %.0f ms\n", read,
                milliseconds(begun));
    return true;
}

/// When any plot of the window was drawn last. Plots wait some milliseconds for further changes.
class LastDrawn : public QObject
{
public:
    explicit LastDrawn(const QWidget& window)
    {
        for (const QCustomPlot* plot : window.findChildren<QCustomPlot*>())
            connect(plot, &QCustomPlot::afterReplot, this,
                    [this] { m_at = std::chrono::steady_clock::now(); });
    }
    [[nodiscard]] std::chrono::steady_clock::time_point at() const { return m_at; }

private:
    std::chrono::steady_clock::time_point m_at;
};

/// Presses keys for some seconds of the job: another page, then another layer, in turn. A key is
/// answered when the window has handled it; `toDrawn`: when the last plot that it changed is drawn,
/// which can be told only where the job itself changes none.
void measureKeys(MainWindow& window, const char* what, const bool toDrawn)
{
    constexpr int pages = 9;
    constexpr double spanMs = 20'000, settleMs = 3000, watchMs = 150;
    const LastDrawn drawn(window);
    std::vector<double> turns;
    const auto answered = [&](const Qt::Key key, const Qt::KeyboardModifier modifier) {
        const auto begun = std::chrono::steady_clock::now();
        QTest::keyClick(&window, key, modifier);
        QApplication::processEvents();
        auto last = std::chrono::steady_clock::now();
        while (milliseconds(begun) < watchMs) {
            const auto turn = std::chrono::steady_clock::now();
            QApplication::processEvents();
            turns.push_back(milliseconds(turn));
            if (toDrawn && drawn.at() > turn)
                last = std::chrono::steady_clock::now();
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        return std::chrono::duration<double, std::milli>(last - begun).count();
    };
    const auto begun = std::chrono::steady_clock::now();
    while (milliseconds(begun) < settleMs)
        QApplication::processEvents(QEventLoop::AllEvents, 5);
    std::vector<double> page, layer;
    for (int press = 0; window.jobs().busy() && milliseconds(begun) < spanMs; ++press) {
        page.push_back(answered(Qt::Key(Qt::Key_1 + press % pages), Qt::ControlModifier));
        layer.push_back(answered(Qt::Key_Down, Qt::AltModifier));
    }
    std::printf("%s\n", what);
    report("  another page", page);
    report("  another layer", layer);
    report("  turns of the event loop", turns);
}

bool benchBusyWindow(const QString& path, const QString& folder)
{
    MainWindow window(coreServices());
    window.resize(1500, 950);
    window.show();
    window.activateWindow();
    if (!QTest::qWaitForWindowActive(&window) || !open(window, path))
        return false;
    const auto plan = [&folder](const char* name) {
        return demoPlan(MLA_TEST_DATA "/../resources", folder.toStdString() + name);
    };
    JobTask task;
    task.title = QStringLiteral("refinement");
    task.work = [plan = plan("/other")](JobContext& job) -> Status {
        JobContext silent(job.stopToken(), {}); // the Refinement page would draw what it tells
        MLA_CHECK(runStudy(silent, plan));
        return {};
    };
    window.jobs().start(task);
    measureKeys(window, "while a job computes, keys until all is drawn:", true);
    window.jobs().cancelAll();
    while (window.jobs().busy())
        QApplication::processEvents(QEventLoop::AllEvents, 5);
    window.jobs().start(plan("/live"));
    measureKeys(window,
                "while the study that is shown is computed, keys until they are handled:", false);
    return true;
}

int benchStudies()
{
    const QTemporaryDir folder;
    const QString path = folder.filePath("big.h5");
    if (!saveStudy(path.toStdString(), largeStudy()))
        return 1;
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, folder.path());
    return benchOpening(path) && benchBusyWindow(path, folder.path()) ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    QApplication application(argc, argv);
    applyTheme(application, Theme::Light);
    benchFrames();
    return benchStudies();
}
