"""The fields of kubeadm.k8s.io/v1beta4.

Facts of kubernetes/kubernetes, cmd/kubeadm/app/apis/kubeadm/v1beta4/types.go and bootstraptoken/v1/types.go: for each
type its fields by their kind (see `upstream_fields`).
"""

from __future__ import annotations

from collections.abc import Mapping

VERSIONS = ("kubeadm.k8s.io/v1beta4",)
_COMPONENT = {
    "[Arg]": "extraArgs",
    "[EnvVar]": "extraEnvs",
    "[HostPathMount]": "extraVolumes",
}
_IMAGE = "imageRepository imageTag"
TYPES: Mapping[str, Mapping[str, str]] = {
    "InitConfiguration": {
        "APIEndpoint": "localAPIEndpoint",
        "NodeRegistrationOptions": "nodeRegistration",
        "Patches": "patches",
        "Timeouts": "timeouts",
        "[BootstrapToken]": "bootstrapTokens",
        "[text]": "skipPhases",
        "flag": "dryRun",
        "text": "certificateKey",
    },
    "ClusterConfiguration": {
        "APIServer": "apiServer",
        "ControlPlaneComponent": "controllerManager scheduler",
        "DNS": "dns",
        "Etcd": "etcd",
        "Networking": "networking",
        "Proxy": "proxy",
        "duration": "caCertificateValidityPeriod certificateValidityPeriod",
        "text": """
        certificatesDir clusterName controlPlaneEndpoint encryptionAlgorithm imageRepository kubernetesVersion""",
        "{flag}": "featureGates",
    },
    "JoinConfiguration": {
        "Discovery": "discovery",
        "JoinControlPlane": "controlPlane",
        "NodeRegistrationOptions": "nodeRegistration",
        "Patches": "patches",
        "Timeouts": "timeouts",
        "[text]": "skipPhases",
        "flag": "dryRun",
        "text": "caCertPath",
    },
    "ControlPlaneComponent": _COMPONENT,
    "APIServer": {**_COMPONENT, "[text]": "certSANs"},
    "DNS": {"flag": "disabled", "text": _IMAGE},
    "Proxy": {"flag": "disabled"},
    "APIEndpoint": {"number": "bindPort", "text": "advertiseAddress"},
    "NodeRegistrationOptions": {
        "[Arg]": "kubeletExtraArgs",
        "[Taint]": "taints",
        "[text]": "ignorePreflightErrors",
        "flag": "imagePullSerial",
        "text": "criSocket imagePullPolicy name",
    },
    "Networking": {"text": "dnsDomain podSubnet serviceSubnet"},
    "Etcd": {"LocalEtcd": "local", "ExternalEtcd": "external"},
    "LocalEtcd": {
        "[Arg]": "extraArgs",
        "[EnvVar]": "extraEnvs",
        "[text]": "peerCertSANs serverCertSANs",
        "text": f"dataDir {_IMAGE}",
    },
    "ExternalEtcd": {"[text]": "endpoints", "text": "caFile certFile keyFile"},
    "JoinControlPlane": {"APIEndpoint": "localAPIEndpoint", "text": "certificateKey"},
    "Discovery": {
        "BootstrapTokenDiscovery": "bootstrapToken",
        "FileDiscovery": "file",
        "text": "tlsBootstrapToken",
    },
    "BootstrapTokenDiscovery": {
        "[text]": "caCertHashes",
        "flag": "unsafeSkipCAVerification",
        "text": "apiServerEndpoint token",
    },
    "FileDiscovery": {"text": "kubeConfigPath"},
    "HostPathMount": {"flag": "readOnly", "text": "hostPath mountPath name pathType"},
    "Patches": {"text": "directory"},
    "Arg": {"text": "name value"},
    "EnvVar": {"any": "valueFrom", "text": "name value"},
    "Timeouts": {
        "duration": """
        controlPlaneComponentHealthCheck discovery etcdAPICall kubeletHealthCheck kubernetesAPICall tlsBootstrap
        upgradeManifests""",
    },
    "BootstrapToken": {
        "[text]": "groups usages",
        "duration": "ttl",
        "text": "description expires token",
    },
    "Taint": {"text": "effect key timeAdded value"},
}
