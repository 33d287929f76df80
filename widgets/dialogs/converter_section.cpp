// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/dialogs/converter_section.h"

#include <QComboBox>
#include <QLabel>
#include <QSpinBox>

#include "widgets/common/plain_text.h"

namespace mla::ui
{

ConverterSection::ConverterSection(const std::string& converter, QWidget* parent)
    : FormSection(converter == "mha2mla" ? tr("MHA2MLA") : tr("TransMLA"), parent),
      m_converter(converter)
{
    const bool mha = converter == "mha2mla";
    setCheckable(true);
    connect(this, &QGroupBox::toggled, this, &ConverterSection::showCache);
    addMessageLine(mha ? Field::Mha2mlaModel : Field::TransmlaModel);
    m_rank = addSpin(mha ? Field::Mha2mlaRank : Field::TransmlaRank, tr("Latent rank r"),
                     tr("kv_lora_rank: size of the cached latent"), 1);
    m_rope = addSpin(mha ? Field::Mha2mlaRope : Field::TransmlaRope, tr("Rotary dimensions d_r"),
                     mha ? tr("qk_rope_head_dim: kept rotary dimensions of each KV head")
                         : tr("qk_rope_head_dim: size of the one rotary key head"),
                     2);
    m_rope->setSingleStep(2);
    if (mha) {
        m_select = new QComboBox(this);
        m_select->addItems({QStringLiteral("2-norm"), QStringLiteral("distance-weighted"),
                            QStringLiteral("high"), QStringLiteral("low"),
                            QStringLiteral("uniform")});
        m_select->setToolTip(tr("Which frequency pairs stay rotary"));
        addField(Field::Mha2mlaSelection, tr("RoPE selection"), m_select);
        m_svd = new QComboBox(this);
        m_svd->addItems(
            {QStringLiteral("joint"), QStringLiteral("split"), QStringLiteral("activation-aware")});
        m_svd->setToolTip(tr("How keys and values are factorised"));
        FormSection::addRow(tr("SVD"), m_svd);
        for (QComboBox* box : {m_select, m_svd})
            connect(box, &QComboBox::currentIndexChanged, this, &ConverterSection::showCache);
    } else {
        m_fold = addSpin(Field::TransmlaFold, tr("Frequency fold"),
                         tr("Adjacent frequencies rotated together"), 0);
        m_fold->setSpecialValueText(tr("smallest"));
    }
    m_cache = new QLabel(this);
    m_cache->setWordWrap(true);
    addNote(m_cache);
    showCache();
}

QSpinBox* ConverterSection::addSpin(Field field, const QString& label, const QString& explanation,
                                    int minimum)
{
    auto* spin = new QSpinBox(this);
    spin->setRange(minimum, 65536);
    spin->setToolTip(explanation);
    spin->setAccessibleName(title() + QStringLiteral(": ") + label);
    addField(field, label, spin);
    connect(spin, &QSpinBox::valueChanged, this, [this] {
        m_touched |= !m_proposing;
        showCache();
    });
    return spin;
}

ConverterForm ConverterSection::value() const
{
    ConverterForm form;
    form.enabled = isChecked();
    form.settings.converter = m_converter;
    form.settings.kvLoraRank = m_rank->value();
    form.settings.qkRopeHeadDim = m_rope->value();
    if (m_fold)
        form.settings.freqfold = m_fold->value();
    if (m_select)
        form.settings.ropeSelect = m_select->currentText().toStdString();
    if (m_svd)
        form.settings.svd = m_svd->currentText().toStdString();
    return form;
}

void ConverterSection::setValue(const ConverterForm& form)
{
    if (form.enabled)
        setSettings(form.settings);
    else
        setChecked(false);
}

void ConverterSection::setSettings(const ConvertSettings& settings)
{
    setChecked(settings.converter == m_converter);
    if (!isChecked())
        return;
    m_touched = true; // the values stay when a checkpoint is read
    m_rank->setValue(settings.kvLoraRank);
    m_rope->setValue(settings.qkRopeHeadDim);
    if (m_fold)
        m_fold->setValue(settings.freqfold);
    if (m_select)
        m_select->setCurrentText(text(settings.ropeSelect));
    if (m_svd)
        m_svd->setCurrentText(text(settings.svd));
}

void ConverterSection::setModel(const std::optional<InspectReport>& model)
{
    m_model = model;
    if (model && !m_touched) {
        m_proposing = true;
        const ConvertSettings proposal = halvedCache(m_converter, model->config);
        m_rank->setValue(proposal.kvLoraRank);
        m_rope->setValue(proposal.qkRopeHeadDim);
        m_proposing = false;
    }
    showCache();
}

void ConverterSection::setSpectra(std::optional<WeightSpectra> spectra)
{
    m_spectra = std::move(spectra);
    showCache();
}

/// From the weights alone, so before calibration: it ranks ranks, and says nothing of acceptance.
QString ConverterSection::predictedError() const
{
    if (!m_spectra)
        return {};
    const double lost = lostBeyondRank(*m_spectra, m_rank->value());
    QStringList layers;
    for (const int layer : m_spectra->layers)
        layers << QString::number(layer);
    return QLatin1Char('\n') +
           tr("Predicted error: %1 % of the key and value weights lie beyond this rank (layers %2)")
               .arg(100 * lost, 0, 'f', 1)
               .arg(layers.join(QStringLiteral(", ")));
}

void ConverterSection::showCache()
{
    if (!m_cache)
        return; // still being built
    if (m_model) {
        const auto original = originalCacheElements(m_model->config);
        const auto elements = plannedCacheElements(m_model->config, value().settings);
        m_cache->setText(tr("Cache: %1 of %2 elements per token and layer (%3 %)")
                             .arg(elements)
                             .arg(original)
                             .arg(100.0 * double(elements) / double(original), 0, 'f', 1) +
                         predictedError());
    } else {
        m_cache->setText(tr("Cache: known once the checkpoint is read"));
    }
    emit changed();
}

} // namespace mla::ui
