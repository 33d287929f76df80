// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <QAbstractItemModelTester>
#include <QTest>

#include "widgets/models/cache_budget_model.h"
#include "widgets/models/model_table.h"
#include "widgets/models/tensor_tree_model.h"

using namespace mla;
using namespace mla::ui;

namespace
{

using Mode = QAbstractItemModelTester::FailureReportingMode;
using M = TensorTreeModel;

TensorSummary summary(const std::string& name, std::vector<std::int64_t> shape,
                      const std::string& storage = "F32")
{
    TensorSummary tensor;
    tensor.name = name;
    tensor.dtype = tensor.storage = storage;
    tensor.shape = std::move(shape);
    tensor.bytes = tensor.elements() * (storage == "F32" ? 4 : 2);
    tensor.file = "model.safetensors";
    return tensor;
}

/// Twelve layers would sort as 1, 10, 11, 2 by text; three of them do to show it.
std::vector<TensorSummary> tensors()
{
    return {summary("model.embed_tokens.weight", {256, 8}, "BF16"),
            summary("model.layers.10.input_layernorm.weight", {8}),
            summary("model.layers.2.input_layernorm.weight", {8}),
            summary("model.layers.2.self_attn.k_proj.weight", {4, 8}),
            summary("model.layers.2.self_attn.q_proj.weight", {8, 8}, "BF16"),
            summary("model.norm.weight", {8})};
}

TensorStatistics measured(const std::string& name, double low, double high)
{
    TensorStatistics statistics;
    statistics.name = name;
    statistics.elements = 8;
    statistics.zeros = 1;
    statistics.minimum = low;
    statistics.maximum = high;
    statistics.mean = 0.5;
    statistics.deviation = 0.25;
    statistics.absoluteMaximum = std::max(std::abs(low), std::abs(high));
    statistics.rowNormMinimum = 1;
    statistics.rowNormMaximum = 2;
    return statistics;
}

void appendTree(const QAbstractItemModel& model, const QModelIndex& parent, int depth,
                const QList<int>& columns, QStringList& lines)
{
    for (int row = 0; row < model.rowCount(parent); ++row) {
        QStringList cells;
        for (const int column : columns)
            cells << model.index(row, column, parent).data().toString();
        lines << QString(2 * depth, QLatin1Char(' ')) + cells.join(QStringLiteral(" | "));
        appendTree(model, model.index(row, 0, parent), depth + 1, columns, lines);
    }
}

QStringList tree(const QAbstractItemModel& model, const QList<int>& columns = {M::Name})
{
    QStringList lines;
    appendTree(model, {}, 0, columns, lines);
    return lines;
}

/// 4 layers, 2 G h = 32 elements, made for 4,096 positions.
ModelConfig toyConfig()
{
    ModelConfig config;
    config.modelType = "llama";
    config.hiddenSize = 32;
    config.numHiddenLayers = 4;
    config.numAttentionHeads = 4;
    config.numKeyValueHeads = 2;
    config.headDim = 8;
    config.maxPositionEmbeddings = 4096;
    return config;
}

QStringList budget(const CacheBudgetModel& model)
{
    using C = CacheBudgetModel;
    return tree(model, {C::Context, C::Original, C::Converted, C::Saved});
}

} // namespace

class CheckpointModelsTest : public QObject
{
    Q_OBJECT
private slots:
    void tensorsHangUnderLayerAndModule();
    void plainListKeepsTheOrder();
    void statisticsShowWhereTheyBelong();
    void nonFiniteValuesAreColouredAndLocated();
    void filterKeepsGroupsOfWhatItFinds();
    void sortsByNumbersWithGapsLast();
    void tensorsBelowASelection();
    void exportHasOneRowATensor();
    void budgetByContext();
    void budgetOfADraft();
    void windowsBendTheBudget();
    void longContextsAreMarked();
};

void CheckpointModelsTest::tensorsHangUnderLayerAndModule()
{
    TensorTreeModel model;
    const QAbstractItemModelTester tester(&model, Mode::QtTest);
    model.setTensors(tensors());
    QCOMPARE(tree(model, {M::Name, M::Stored, M::Shape, M::Size}),
             QStringList({"model.embed_tokens.weight | BF16 | 256 × 8 | 4.0 KiB",
                          "Layer 2 | mixed | 3 tensors | 288 bytes",
                          "  input_layernorm.weight | F32 | 8 | 32 bytes",
                          "  self_attn | mixed | 2 tensors | 256 bytes",
                          "    k_proj.weight | F32 | 4 × 8 | 128 bytes",
                          "    q_proj.weight | BF16 | 8 × 8 | 128 bytes",
                          "Layer 10 | F32 | 1 tensor | 32 bytes",
                          "  input_layernorm.weight | F32 | 8 | 32 bytes",
                          "model.norm.weight | F32 | 8 | 32 bytes"}));
    model.setTensors({});
    QCOMPARE(model.rowCount({}), 0);
}

void CheckpointModelsTest::plainListKeepsTheOrder()
{
    TensorTreeModel model;
    const QAbstractItemModelTester tester(&model, Mode::QtTest);
    model.setTensors(tensors());
    model.setGrouped(false);
    QCOMPARE(tree(model),
             QStringList({"model.embed_tokens.weight", "model.layers.2.input_layernorm.weight",
                          "model.layers.2.self_attn.k_proj.weight",
                          "model.layers.2.self_attn.q_proj.weight",
                          "model.layers.10.input_layernorm.weight", "model.norm.weight"}));
}

void CheckpointModelsTest::statisticsShowWhereTheyBelong()
{
    TensorTreeModel model;
    const QAbstractItemModelTester tester(&model, Mode::QtTest);
    model.setTensors(tensors());
    model.addStatistics({measured("model.layers.2.self_attn.k_proj.weight", -3, 1),
                         measured("model.layers.2.self_attn.q_proj.weight", -1, 2),
                         measured("gone", -9, 9)});
    const QList<int> columns = {M::Name,        M::Minimum, M::Maximum,   M::Mean,
                                M::LargestSize, M::Zeros,   M::NonFinite, M::RowNormMaximum};
    const QStringList shown = tree(model, columns);
    QCOMPARE(shown[0], QStringLiteral("model.embed_tokens.weight |  |  |  |  |  |  | "));
    // A group spans its tensors; a mean of means would be wrong, so there is none.
    QCOMPARE(shown[1], QStringLiteral("Layer 2 | -3 | 2 |  | 3 | 2 | 0 | 2"));
    QCOMPARE(shown[4], QStringLiteral("    k_proj.weight | -3 | 1 | 0.5 | 3 | 1 | 0 | 2"));
    model.setGrouped(false); // the numbers stay
    QCOMPARE(model.index(2, M::Minimum, {}).data().toString(), QStringLiteral("-3"));
    model.setTensors(tensors()); // another model: they do not
    QVERIFY(!model.index(2, M::Minimum, {}).data(M::valueRole).isValid());
}

void CheckpointModelsTest::nonFiniteValuesAreColouredAndLocated()
{
    TensorTreeModel model;
    model.setTensors(tensors());
    TensorStatistics broken = measured("model.norm.weight", 0, 1);
    broken.nans = 2;
    broken.infinities = 1;
    broken.firstNonFinite = {5};
    model.addStatistics({broken});
    const QModelIndex cell = model.index(3, M::NonFinite, {});
    QCOMPARE(cell.data().toString(), QStringLiteral("3"));
    QVERIFY(cell.data(Qt::ForegroundRole).isValid());
    QVERIFY(cell.data(Qt::ToolTipRole).toString().contains("2 NaN, 1 infinite; the first at [5]"));
    QVERIFY(!model.index(0, M::NonFinite, {}).data(Qt::ForegroundRole).isValid());
}

void CheckpointModelsTest::filterKeepsGroupsOfWhatItFinds()
{
    TensorTreeModel model;
    model.setTensors(tensors());
    TensorFilterProxy proxy;
    const QAbstractItemModelTester tester(&proxy, Mode::QtTest);
    proxy.setSourceModel(&model);
    proxy.setWords("K_PROJ");
    QCOMPARE(tree(proxy), QStringList({"Layer 2", "  self_attn", "    k_proj.weight"}));
    proxy.setWords("bf16 attn");
    QCOMPARE(tree(proxy), QStringList({"Layer 2", "  self_attn", "    q_proj.weight"}));
    proxy.setWords("4×8");
    QCOMPARE(tree(proxy).size(), 3);
    proxy.setWords("nothing like it");
    QCOMPARE(proxy.rowCount(), 0);
    proxy.setWords("");
    QCOMPARE(tree(proxy), tree(model));
}

void CheckpointModelsTest::sortsByNumbersWithGapsLast()
{
    TensorTreeModel model;
    model.setTensors(tensors());
    model.setGrouped(false);
    TensorFilterProxy proxy;
    const QAbstractItemModelTester tester(&proxy, Mode::QtTest);
    proxy.setSourceModel(&model);
    proxy.sort(M::Shape, Qt::DescendingOrder); // 2048, 64, 32, 8 elements
    QCOMPARE(tree(proxy).mid(0, 3),
             QStringList({"model.embed_tokens.weight", "model.layers.2.self_attn.q_proj.weight",
                          "model.layers.2.self_attn.k_proj.weight"}));
    model.addStatistics({measured("model.norm.weight", -10, 1),
                         measured("model.layers.2.self_attn.k_proj.weight", -9, 1)});
    for (const Qt::SortOrder order : {Qt::AscendingOrder, Qt::DescendingOrder}) {
        proxy.sort(M::Minimum, order);
        QStringList first = tree(proxy).mid(0, 2);
        if (order == Qt::DescendingOrder)
            std::reverse(first.begin(), first.end());
        QCOMPARE(first,
                 QStringList({"model.norm.weight", "model.layers.2.self_attn.k_proj.weight"}));
    }
    proxy.sort(-1);
    QCOMPARE(tree(proxy), tree(model));
}

void CheckpointModelsTest::tensorsBelowASelection()
{
    TensorTreeModel model;
    model.setTensors(tensors());
    TensorFilterProxy proxy;
    proxy.setSourceModel(&model);
    const QModelIndex layer = proxy.index(1, 0), attention = proxy.index(1, 0, layer);
    using Names = std::vector<std::string>;
    QCOMPARE(proxy.tensorsBelow({attention}), Names({"model.layers.2.self_attn.k_proj.weight",
                                                     "model.layers.2.self_attn.q_proj.weight"}));
    QCOMPARE(proxy.tensorsBelow({attention, layer}).size(), std::size_t(3)); // each once
    QCOMPARE(proxy.tensorsBelow({}).size(), std::size_t(6));
    proxy.setWords("k_proj"); // what is hidden is not meant
    QCOMPARE(proxy.tensorsBelow({proxy.index(0, 0)}),
             Names({"model.layers.2.self_attn.k_proj.weight"}));
}

void CheckpointModelsTest::exportHasOneRowATensor()
{
    TensorTreeModel model;
    model.setTensors(tensors());
    model.addStatistics({measured("model.norm.weight", -10, 1)});
    const Table table = tableFromModel(model, M::valueRole, "tensors", "Tensors");
    QCOMPARE(table.rows.size(), std::size_t(6));
    const std::vector<Cell>& norm = table.rows.back();
    QCOMPARE(std::get<std::string>(norm[M::Name]), std::string("model.norm.weight"));
    QCOMPARE(std::get<std::string>(norm[M::Shape]), std::string("8"));
    QCOMPARE(std::get<std::int64_t>(norm[M::Size]), std::int64_t(32));
    QCOMPARE(std::get<double>(norm[M::Minimum]), -10.0);
    QVERIFY(std::holds_alternative<std::monostate>(table.rows.front()[M::Minimum]));
}

void CheckpointModelsTest::budgetByContext()
{
    CacheBudgetModel model;
    const QAbstractItemModelTester tester(&model, Mode::QtTest);
    QCOMPARE(model.rowCount({}), 0);
    model.setCache(toyConfig(), 12, {1, 2, 2});
    const QStringList rows = budget(model);
    QCOMPARE(rows.size(), 8);
    // 1024 tokens x 4 layers x 2 sequences x 2 bytes = 16 KiB an element: 32, 12, 20 of them.
    QCOMPARE(rows.first(), QStringLiteral("1,024 | 512.0 KiB | 192.0 KiB | 320.0 KiB"));
    QCOMPARE(rows.last(), QStringLiteral("131,072 | 64.0 MiB | 24.0 MiB | 40.0 MiB"));
    QCOMPARE(model.index(0, CacheBudgetModel::Saved).data(CacheBudgetModel::valueRole).toLongLong(),
             20LL * 16384);
    model.setCache(toyConfig(), 40, {1, 2, 2}); // larger than the original's
    QCOMPARE(budget(model).first(), QStringLiteral("1,024 | 512.0 KiB | 640.0 KiB | −128.0 KiB"));
    model.setCache(toyConfig(), std::nullopt, {1, 2, 2});
    QCOMPARE(budget(model).first(), QStringLiteral("1,024 | 512.0 KiB | – | –"));
    model.setCache(std::nullopt, std::nullopt, {});
    QCOMPARE(model.rowCount({}), 0);
}

void CheckpointModelsTest::budgetOfADraft()
{
    ModelConfig draft = toyConfig();
    draft.mla = MlaConfig();
    draft.mla->latentRank = {4, 6, 6, 8};
    draft.mla->qkRopeHeadDim = 2;
    draft.mla->ropeKeyHeads = 1;
    CacheBudgetModel model;
    model.setCache(draft, std::nullopt, {1, 1, 4});
    // (4 + 6 + 6 + 8 + 4 x 2) x 1024 x 4 bytes against 4 x 32 x 4 KiB
    QCOMPARE(budget(model).first(), QStringLiteral("1,024 | 512.0 KiB | 128.0 KiB | 384.0 KiB"));
    QCOMPARE(
        model.headerData(CacheBudgetModel::Converted, Qt::Horizontal, Qt::DisplayRole).toString(),
        QStringLiteral("This draft"));
}

void CheckpointModelsTest::windowsBendTheBudget()
{
    ModelConfig config = toyConfig();
    config.slidingWindow = {2048, 2048, 0, 0};
    CacheBudgetModel model;
    model.setCache(config, 16, {1, 1, 1});
    const QStringList rows = budget(model);
    QCOMPARE(rows[1], QStringLiteral("2,048 | 256.0 KiB | 128.0 KiB | 128.0 KiB"));
    // two layers of 4096 tokens, two of 2048: 12,288 x 32 bytes
    QCOMPARE(rows[2], QStringLiteral("4,096 | 384.0 KiB | 192.0 KiB | 192.0 KiB"));
}

void CheckpointModelsTest::longContextsAreMarked()
{
    CacheBudgetModel model;
    model.setCache(toyConfig(), 12, {});
    const auto marked = [&](int row) {
        return model.index(row, 0).data(Qt::ForegroundRole).isValid() &&
               model.index(row, 0).data(Qt::ToolTipRole).toString().contains("4,096");
    };
    QVERIFY(!marked(2)); // 4,096
    QVERIFY(marked(3));
}

QTEST_MAIN(CheckpointModelsTest)
#include "tst_checkpoint_models.moc"
