// SPDX-License-Identifier: GPL-3.0-or-later
// TOY of the case list as each family: hidden 64, 2 layers, 4 heads, 2 KV heads, head_dim 16,
// seeded weights, with the demo checkpoint's tokenizer (hence 512 tokens).
#pragma once

#include <cmath>

#include "core/model/tensors.h"
#include "tests/support/numeric.h"

namespace mla::test
{

/// llama | qwen2 (every k_proj.bias 50) | qwen3 (k_norm.weight a ramp 0.1 .. 10) | mistral (window
/// of 16) | qwen2-window (window of 12 in the second layer) | yarn (llama, factor 4 of 64 tokens)
/// | llama3 (its rope scaling, factor 32) | deep (llama of 4 layers) | qwen2-wide (heads of 32
/// dims, which vLLM takes on CPUs). The embeddings of the last two share a part, as trained ones
/// do: a latent channel can be constant.
inline nlohmann::json toyConfig(const std::string& kind)
{
    nlohmann::json config = {{"model_type", "llama"},    {"architectures", {"LlamaForCausalLM"}},
                             {"hidden_size", 64},        {"intermediate_size", 128},
                             {"num_hidden_layers", 2},   {"num_attention_heads", 4},
                             {"num_key_value_heads", 2}, {"head_dim", 16},
                             {"vocab_size", 512},        {"rope_theta", 10000.0},
                             {"rms_norm_eps", 1e-5},     {"tie_word_embeddings", false},
                             {"bos_token_id", 1},        {"eos_token_id", 2},
                             {"torch_dtype", "float32"}, {"max_position_embeddings", 512},
                             {"hidden_act", "silu"}};
    const auto become = [&](const char* type, const char* architecture) {
        config["model_type"] = type;
        config["architectures"] = {architecture};
    };
    if (kind.starts_with("qwen2"))
        become("qwen2", "Qwen2ForCausalLM");
    if (kind == "qwen2-window") {
        config["use_sliding_window"] = true;
        config["sliding_window"] = 12;
        config["max_window_layers"] = 1;
    }
    if (kind == "qwen3")
        become("qwen3", "Qwen3ForCausalLM");
    if (kind == "mistral") {
        become("mistral", "MistralForCausalLM");
        config["sliding_window"] = 16;
    }
    if (kind == "yarn")
        config["rope_scaling"] = {
            {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
    if (kind == "llama3") {
        config["rope_scaling"] = {{"rope_type", "llama3"},
                                  {"factor", 32.0},
                                  {"low_freq_factor", 1.0},
                                  {"high_freq_factor", 4.0},
                                  {"original_max_position_embeddings", 256}};
        config["max_position_embeddings"] = 16384;
    }
    if (kind == "qwen2-wide")
        config.update({{"hidden_size", 128}, {"head_dim", 32}});
    if (kind == "deep")
        config["num_hidden_layers"] = 4;
    return config;
}

/// Writes the checkpoint into `directory`, which is made.
inline void writeToy(const std::string& kind, const std::filesystem::path& directory)
{
    std::filesystem::create_directories(directory);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
        std::filesystem::copy_file(stories() / name, directory / name);
    std::ofstream(directory / "config.json") << toyConfig(kind).dump(2) << '\n';
    const ModelConfig config = must(readModelConfig(directory));
    torch::Generator generator = seededGenerator(11, 0);
    std::vector<std::pair<std::string, torch::Tensor>> tensors;
    for (const ExpectedTensor& expected : expectedTensors(config)) {
        const std::string& name = expected.name;
        torch::Tensor t = torch::randn(expected.shape, generator, torch::dtype(torch::kFloat32));
        if (name.ends_with("k_proj.bias"))
            t.fill_(50);
        else if (name.ends_with("k_norm.weight"))
            t.copy_(torch::linspace(0.1, 10, t.numel()));
        else if (t.dim() == 1 && name.ends_with(".weight"))
            t = 1 + 0.3 * t;
        else if (t.dim() == 2)
            t = t * (1.2 / std::sqrt(static_cast<double>(t.size(1))));
        if ((kind == "deep" || kind == "qwen2-wide") && name == "model.embed_tokens.weight")
            t += 0.3 * torch::randn({t.size(1)}, generator, torch::dtype(torch::kFloat32));
        tensors.emplace_back(name, t.contiguous());
    }
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : tensors)
        views.push_back(viewOf(name, tensor));
    must(writeSafetensors(directory / "model.safetensors", views));
}

} // namespace mla::test
