// Pronounce words by one graph, written by `heedful export MODEL --to onnx --single cmu.onnx`, through ONNX Runtime.
//
//   g++ -std=c++17 -O2 pronounce.cpp -o pronounce $(pkg-config --cflags --libs libonnxruntime)
//   ./pronounce cmu.onnx hello world        or, a word on each line:  ./pronounce cmu.onnx < words.txt
//
// Words are given as the model was trained on them: in its case, and in the normal form that the metadata name.
#include <filesystem>
#include <iostream>
#include <onnxruntime_cxx_api.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

std::vector<int64_t> code_points(const std::string& word) {
    std::vector<int64_t> points;
    for (const unsigned char byte : word)
        if ((byte & 0xC0) != 0x80 || points.empty())  // the first byte of a letter has its upper bits
            points.push_back(byte < 0xC0 ? byte : byte < 0xE0 ? byte & 0x1F : byte < 0xF0 ? byte & 0x0F : byte & 0x07);
        else
            points.back() = (points.back() << 6 | (byte & 0x3F)) & 0x1FFFFF;
    if (points.empty()) points.push_back(0);  // a word has a column at least
    return points;
}

int main(int count, char** arguments) try {
    if (count < 2) throw std::invalid_argument("usage: pronounce GRAPH.onnx [WORD...], or words on standard input");
    Ort::Env environment(ORT_LOGGING_LEVEL_ERROR);
    Ort::Session session(environment, std::filesystem::path(arguments[1]).c_str(), Ort::SessionOptions());
    Ort::AllocatorWithDefaultOptions allocator;
    const auto facts = session.GetModelMetadata();
    const auto listed = facts.LookupCustomMetadataMapAllocated("symbol_lines", allocator);
    const auto separator = facts.LookupCustomMetadataMapAllocated("separator", allocator);
    if (!listed || !separator) throw std::invalid_argument("no symbols in the graph; export the model again");
    std::vector<std::string> symbols;  // by id
    std::istringstream lines(listed.get());
    for (std::string line; std::getline(lines, line);) symbols.push_back(line);

    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    const char *input = "code_points", *output = "ids";
    const auto pronounce = [&](const std::string& word) {
        auto points = code_points(word);
        const int64_t shape[] = {1, static_cast<int64_t>(points.size())};  // words, letters
        const auto value = Ort::Value::CreateTensor<int64_t>(memory, points.data(), points.size(), shape, 2);
        const auto results = session.Run(Ort::RunOptions(), &input, &value, 1, &output, 1);
        const int64_t* ids = results[0].GetTensorData<int64_t>();
        std::string phones;
        for (size_t place = 0; place < results[0].GetTensorTypeAndShapeInfo().GetElementCount(); ++place)
            phones += (place ? separator.get() : "") + symbols.at(ids[place]);
        std::cout << word << '\t' << phones << '\n';
    };
    for (int place = 2; place < count; ++place) pronounce(arguments[place]);
    if (count == 2)
        for (std::string word; std::getline(std::cin, word);) {
            if (!word.empty() && word.back() == '\r') word.pop_back();
            pronounce(word);
        }
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
