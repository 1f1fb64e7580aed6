"""Model types of transformers whose files are not read, whatever ``layer_types`` they have.

A list, because a file alone cannot say it: most of these types do not look at ``layer_types``, so that the model which
transformers builds from a file that has them sees other tokens than the file says. The few that do were not compared
with their tiny models, or are no language models. A test compares this list, and those of the types that are read,
with the installed transformers: each type is in exactly one.
"""

UNREAD = frozenset(
    """
    EvollaModel aimv2_text_model aimv2_vision_model align_text_model align_vision_model altclip_text_model
    altclip_vision_model apertus arcee aria_text audio-spectrogram-transformer audioflamingo3_encoder
    autoformer axk1 bamba bark beit bert-generation biogpt bit bitnet blenderbot blenderbot-small
    blip_2_qformer blip_2_vision_model blip_text_model blip_vision_model blt blt_global_transformer
    blt_local_decoder blt_local_encoder blt_patcher bridgetower_text_model bridgetower_vision_model bros
    canary canary_decoder canine chameleon chameleon_vqgan chinese_clip_text_model chinese_clip_vision_model
    chmv2 clap_audio_model clap_text_model clip_text_model clip_vision_model clipseg_text_model
    clipseg_vision_model clvp_decoder clvp_encoder codegen cohere_asr cohere_compass_vision colmodernvbert
    colpali colqwen2 conditional_detr convbert convnext convnextv2 cosmos3_edge_text cosmos3_edge_vision
    cpmant csm csm_depth_decoder_model ctrl cvt d_fine dab-detr dac data2vec-audio data2vec-text
    data2vec-vision dbrx deberta decision_transformer deepseek_ocr2_encoder deepseek_ocr2_sam_vision_model
    deepseek_ocr2_text deepseek_ocr2_vision deformable_detr deimv2 deit depth_anything depth_pro detr dia
    dia_decoder dia_encoder diffllama diffusion_gemma_text dinat dinov2 dinov2_with_registers dinov3_convnext
    dinov3_vit donut-swin dpr dpt edgetam edgetam_mask_decoder edgetam_prompt_encoder edgetam_video
    edgetam_video_mask_decoder edgetam_video_prompt_encoder edgetam_vision_model efficientloftr efficientnet
    emu3_text_model emu3_vqgan encodec encoder-decoder eomt eomt_dinov3 ernie4_5 ernie4_5_moe
    ernie4_5_vl_moe_text ernie4_5_vl_moe_vision esm esmc esmfold2 eurobert evolla exaone4_5_vision falcon_h1
    falcon_mamba fastspeech2_conformer fastspeech2_conformer_hifigan fastspeech2_conformer_with_hifigan
    flaubert flava_image_codebook flava_image_model flava_multimodal_model flava_text_model flex_olmo
    florence_vision fnet focalnet fsmt fun_asr_nano_encoder funnel gemma3n_audio gemma3n_vision gemma4_audio
    gemma4_unified_audio gemma4_unified_vision gemma4_vision git git_vision_model glm4 glm4_moe glm4_moe_lite
    glm4v_moe_text glm4v_moe_vision glm4v_text glm4v_vision glm5_next_vision glm_image_text glm_image_vision
    glm_image_vqmodel glm_ocr_text glm_ocr_vision glmasr_encoder glpn got_ocr2_vision gpt-sw3
    gpt_neox_japanese gradium_phonon_tts granite4_vision_text granite_speech5_ctc granite_speech5_encoder
    granite_speech_encoder granite_speech_plus_encoder granitemoe granitemoeshared groupvit_text_model
    groupvit_vision_model gte helium hgnet_v2 hiera higgs_audio_v2 higgs_audio_v2_tokenizer hrm_text hubert
    hunyuan_v1_dense hunyuan_v1_moe hunyuan_vl_text hunyuan_vl_vision hy_v3 hyperclovax ibert idefics
    idefics2_perceiver idefics2_vision idefics3_vision idefics_perciever idefics_vision ijepa imagegpt
    informer inkling_audio inkling_vision instructblip_qformer instructblip_vision_model
    instructblipvideo_qformer instructblipvideo_vision_model internvl_vision jais2 jamba janus_vision_model
    janus_vqgan jetmoe jina_embeddings_v3 kimi_k25_vision kosmos_2_5_text_model kosmos_2_5_vision_model
    kosmos_2_text_model kosmos_2_vision_model kyutai_speech_to_text lasr_ctc lasr_encoder layoutlm layoutlmv2
    layoutlmv3 layoutxlm levit lfm2 lfm2_moe lightglue lilt llama4_vision_model longcat_flash luke lw_detr
    lw_detr_vit lxmert m2m_100 mamba mamba2 markuplm mask2former maskformer maskformer-swin megatron-bert
    metaclip_2_text_model metaclip_2_vision_model mgp-str mimi mimi_decoder mimi_encoder minicpm3
    minicpm_ocr_vision minicpmv4_6_vision minicpmv4_7_vision minimax_m2 minimax_m3_vl_vision mistral4 mlcd
    mlcd_vision_model mllama_text_model mllama_vision_model mobilebert mobilenet_v1 mobilenet_v2 mobilevit
    mobilevitv2 molmo2_adapter molmo2_text molmo2_vision moonshine moonshine_streaming
    moonshine_streaming_encoder moshi_depth moss_transcribe_diarize_audio mra muse_glimmer_vision
    muse_spark_audio muse_spark_vision musicgen musicgen_decoder musicgen_melody musicgen_melody_decoder mvp
    nanochat nemotron3_5_asr nemotron3_5_transcribe_asr_audio nemotron3_5_transcribe_audio
    nemotron3_5_transcribe_word_timestamp nemotron3_diarization nemotron3_diarization_audio
    nemotron_asr_streaming nemotron_asr_streaming_encoder nemotron_h neucodec nllb-moe nomic_bert nougat
    nystromformer olmoe oneformer openai-gpt ovis2_vision owlv2_text_model owlv2_vision_model
    owlvit_text_model owlvit_vision_model paddleocr_vl_text paddleocr_vl_vision parakeet_ctc parakeet_encoder
    parakeet_rnnt parakeet_tdt patchtsmixer patchtst pe_audio_encoder pe_audio_video_encoder pe_video_encoder
    perceiver phi4_multimodal phi4_multimodal_audio phi4_multimodal_vision pi0 pix2struct_text_model
    pix2struct_vision_model pixio pixtral plbart pocket_tts pocket_tts_audio_tokenizer
    pocket_tts_audio_tokenizer_decoder pocket_tts_audio_tokenizer_encoder poolformer pop2piano
    pp_chart2table_vision pp_doclayout_v2 pp_doclayout_v3 pp_doclayout_v4 pp_formulanet_text
    pp_formulanet_vision pp_lcnet pp_lcnet_v3 pp_lcnet_v4 pp_ocrv5_mobile_det pp_ocrv5_mobile_rec
    pp_ocrv5_server_det pp_ocrv5_server_rec pp_ocrv6_medium_det pp_ocrv6_small_det pp_ocrv6_small_rec
    pp_ocrv6_tiny_rec prompt_depth_anything prophetnet pvt pvt_v2 qianfan_ocr_vision qwen2_5_omni
    qwen2_5_omni_audio_encoder qwen2_5_omni_bigvgan qwen2_5_omni_dit qwen2_5_omni_talker qwen2_5_omni_text
    qwen2_5_omni_token2wav qwen2_5_omni_vision_encoder qwen2_5_vl_text qwen2_5_vl_vision qwen2_audio_encoder
    qwen2_vl_text qwen2_vl_vision qwen3_5_moe_vision qwen3_5_vision qwen3_asr_encoder qwen3_omni_moe
    qwen3_omni_moe_audio_encoder qwen3_omni_moe_talker_code_predictor qwen3_omni_moe_talker_text
    qwen3_omni_moe_text qwen3_omni_moe_vision_encoder qwen3_vl_moe_vision qwen3_vl_text qwen3_vl_vision
    qwen4_exp_vision radio rag reformer regnet rembert resnet rf_detr rf_detr_dinov2 roberta-prelayernorm
    roc_bert roformer rt_detr rt_detr_resnet rt_detr_v2 rwkv sam sam2 sam2_hiera_det_model sam2_mask_decoder
    sam2_prompt_encoder sam2_video sam2_video_mask_decoder sam2_video_prompt_encoder sam2_vision_model
    sam3_detr_decoder sam3_detr_encoder sam3_geometry_encoder sam3_lite_text_detr_decoder
    sam3_lite_text_detr_encoder sam3_lite_text_geometry_encoder sam3_lite_text_mask_decoder
    sam3_lite_text_text_model sam3_mask_decoder sam3_tracker sam3_tracker_mask_decoder
    sam3_tracker_prompt_encoder sam3_tracker_video sam3_tracker_video_mask_decoder
    sam3_tracker_video_prompt_encoder sam3_video sam3_vision_model sam3_vit_model sam_hq sam_hq_mask_decoder
    sam_hq_prompt_encoder sam_hq_vision_model sam_mask_decoder sam_prompt_encoder sam_vision_model sapiens2
    sapiens2_head seamless_m4t seamless_m4t_v2 seed_oss segformer seggpt sew sew-d siglip2_text_model
    siglip2_vision_model siglip_text_model siglip_vision_model slanet slanext slanext_vision smolvlm_vision
    solar_open speech-encoder-decoder speech_to_text speecht5 speecht5_hifigan splinter squeezebert step3p5
    step3p5_vision superglue superpoint swiftformer swin swin2sr swinv2 switch_transformers t5_gemma_module
    t5gemma t5gemma2 t5gemma2_decoder t5gemma2_text table-transformer tapas textnet time_series_transformer
    timesfm timesfm2_5 timesformer timm_backbone timm_wrapper tipsv2_dpt tipsv2_text_model tipsv2_vision_model
    trocr tvp udop unispeech unispeech-sat univnet unlimited_ocr_sam_vision_model unlimited_ocr_text
    unlimited_ocr_vision unlimited_ocr_vision_encoder upernet uvdoc uvdoc_backbone
    vibevoice_acoustic_tokenizer vibevoice_acoustic_tokenizer_decoder vibevoice_acoustic_tokenizer_encoder
    vibevoice_diffusion video_llama_3_vision videomae videomt videoprism_text_model videoprism_vision_model
    vilt vision-encoder-decoder visual_bert vit vit_mae vit_msn vitdet vitmatte vitpose vitpose_backbone vits
    vivit vjepa2 voxtral_encoder wav2vec2 wav2vec2-bert wav2vec2-conformer wavlm whisper xclip_text_model
    xclip_vision_model xcodec xcodec2 xglm xlm xlm-roberta-xl xlnet xlstm xmod yolos yoso youtu zamba zamba2
    zoedepth
    """.split()  # noqa: SIM905
)
