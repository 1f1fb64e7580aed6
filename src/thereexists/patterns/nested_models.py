"""Model types whose language model has a config of its own, ``text_config``; what stands beside that is not read.

A list, because a file alone cannot say it: transformers fills a ``text_config`` that is missing with defaults, and a
model of another type does not look at one that it has. A test compares the list with the installed transformers.
"""

NESTED = frozenset(
    """
    aimv2 align altclip aria audioflamingo3 aya_vision blip blip-2 bridgetower chinese_clip clap clip clipseg
    clvp cohere2_vision cohere_compass cosmos3_edge cosmos3_omni deepseek_ocr2 deepseek_vl deepseek_vl_hybrid
    diffusion_gemma embedding_gemma2 emu3 ernie4_5_vl_moe exaone4_5 fast_vlm flava florence2 fun_asr_nano fuyu
    gemma3 gemma3n gemma4 gemma4_assistant gemma4_unified gemma4_unified_assistant glm46v glm4v glm4v_moe
    glm5_next glm_image glm_ocr glmasr glmga got_ocr2 granite4_vision granite_speech granite_speech_plus
    grounding-dino groupvit hunyuan_vl hyperclovax_vision_v2 idefics2 idefics3 inkling_mm_model instructblip
    instructblipvideo internvl janus kimi_k25 kosmos-2 kosmos-2.5 lfm2_vl lighton_ocr llama4 llava llava_next
    llava_next_video llava_onevision metaclip_2 minicpm_ocr minicpmv4_6 minicpmv4_7 minimax_m3_vl mistral3
    mistral_large4 mllama mm-grounding-dino modernvbert molmo2 moss_transcribe_diarize muse_glimmer muse_spark
    musicflamingo nemo_speechlm nemotron_h_omni omdet-turbo ovis2 owlv2 owlvit paddleocr_vl paligemma pe_audio
    pe_audio_video pe_video perception_lm pix2struct pp_chart2table pp_formulanet qianfan_ocr
    qwen2_5_omni_thinker qwen2_5_vl qwen2_audio qwen2_vl qwen3_5 qwen3_5_moe qwen3_asr qwen3_omni_moe_thinker
    qwen3_vl qwen3_vl_moe qwen4_exp sam3 sam3_lite_text shieldgemma2 siglip siglip2 smolvlm step3p7
    t5gemma2_encoder tipsv2 ultravbert unlimited_ocr vibevoice vibevoice_asr video_llama_3 video_llava
    videoprism vipllava vision-text-dual-encoder voxtral voxtral_realtime xclip
    """.split()  # noqa: SIM905
)
