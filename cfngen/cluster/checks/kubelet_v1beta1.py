"""The fields of kubelet.config.k8s.io/v1beta1 and kubelet.config.k8s.io/v1, as of Kubernetes 1.36.

Facts of kubernetes/kubelet, config/v1beta1/types.go and config/v1/types.go: for each type its fields by their kind (see
`upstream_fields`). Fields of logging and tracing are other packages' and not looked into.
"""

from __future__ import annotations

from collections.abc import Mapping

VERSIONS = ("kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1")
# Fields that earlier minors do not know.
SINCE: Mapping[str, frozenset[str]] = {"1.36": frozenset({"memoryReservationPolicy", "tlsCurvePreferences"})}
TYPES: Mapping[str, Mapping[str, str]] = {
    "KubeletConfiguration": {
        "CrashLoopBackOffConfig": "crashLoopBackOff",
        "KubeletAuthentication": "authentication",
        "KubeletAuthorization": "authorization",
        "MemorySwapConfiguration": "memorySwap",
        "UserNamespaces": "userNamespaces",
        "[MemoryReservation]": "reservedMemory",
        "[ShutdownGracePeriodByPodPriority]": "shutdownGracePeriodByPodPriority",
        "[Taint]": "registerWithTaints",
        "[number]": "tlsCurvePreferences",
        "[text]": """
        allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist
        tlsCipherSuites""",
        "any": "logging tracing",
        "duration": """
        containerLogMonitorInterval cpuCFSQuotaPeriod cpuManagerReconcilePeriod
        evictionPressureTransitionPeriod fileCheckFrequency httpCheckFrequency imageMaximumGCAge
        imageMinimumGCAge nodeStatusReportFrequency nodeStatusUpdateFrequency runtimeRequestTimeout
        shutdownGracePeriod shutdownGracePeriodCriticalPods streamingConnectionIdleTimeout syncFrequency
        volumeStatsAggPeriod""",
        "flag": """
        cgroupsPerQOS cpuCFSQuota enableContentionProfiling enableControllerAttachDetach
        enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler enableServer
        enableSystemLogHandler enableSystemLogQuery failCgroupV1 failSwapOn kernelMemcgNotification
        localStorageCapacityIsolation makeIPTablesUtilChains mergeDefaultEvictionSettings
        protectKernelDefaults registerNode rotateCertificates runOnce seccompDefault serializeImagePulls
        serverTLSBootstrap singleProcessOOMKill""",
        "number": """
        containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod
        healthzPort imageGCHighThresholdPercent imageGCLowThresholdPercent iptablesDropBit
        iptablesMasqueradeBit kubeAPIBurst kubeAPIQPS maxOpenFiles maxParallelImagePulls maxPods
        nodeLeaseDurationSeconds nodeStatusMaxImages oomScoreAdj podPidsLimit
        podsPerCore port readOnlyPort registryBurst registryPullQPS""",
        "fraction": "memoryThrottlingFactor",
        "text": """
        address cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy
        containerLogMaxSize containerRuntimeEndpoint contentType cpuManagerPolicy hairpinMode
        healthzBindAddress imagePullCredentialsVerificationPolicy imageServiceEndpoint kubeReservedCgroup
        kubeletCgroups memoryManagerPolicy memoryReservationPolicy podCIDR podLogsDir providerID
        reservedSystemCPUs resolvConf showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups
        systemReservedCgroup tlsCertFile tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy
        topologyManagerScope volumePluginDir""",
        "{[text]}": "staticPodURLHeader",
        "{flag}": "featureGates",
        "{text}": """
        cpuManagerPolicyOptions evictionHard evictionMinimumReclaim evictionSoft evictionSoftGracePeriod
        kubeReserved qosReserved systemReserved topologyManagerPolicyOptions""",
    },
    "KubeletAuthentication": {
        "KubeletAnonymousAuthentication": "anonymous",
        "KubeletWebhookAuthentication": "webhook",
        "KubeletX509Authentication": "x509",
    },
    "KubeletX509Authentication": {
        "text": "clientCAFile",
    },
    "KubeletWebhookAuthentication": {
        "duration": "cacheTTL",
        "flag": "enabled",
    },
    "KubeletAnonymousAuthentication": {
        "flag": "enabled",
    },
    "KubeletAuthorization": {
        "KubeletWebhookAuthorization": "webhook",
        "text": "mode",
    },
    "KubeletWebhookAuthorization": {
        "duration": "cacheAuthorizedTTL cacheUnauthorizedTTL",
    },
    "MemoryReservation": {
        "number": "numaNode",
        "{any}": "limits",
    },
    "MemorySwapConfiguration": {
        "text": "swapBehavior",
    },
    "ShutdownGracePeriodByPodPriority": {
        "number": "priority shutdownGracePeriodSeconds",
    },
    "CrashLoopBackOffConfig": {
        "duration": "maxContainerRestartPeriod",
    },
    "UserNamespaces": {
        "number": "idsPerPod",
    },
    "CredentialProviderConfig": {
        "[CredentialProvider]": "providers",
    },
    "CredentialProvider": {
        "[ExecEnvVar]": "env",
        "[text]": "args matchImages",
        "duration": "defaultCacheDuration",
        "text": "apiVersion name",
    },
    "ExecEnvVar": {
        "text": "name value",
    },
    "Taint": {
        "text": "effect key timeAdded value",
    },
}
