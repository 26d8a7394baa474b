export KUBECONFIG=/etc/kubernetes/admin.conf
