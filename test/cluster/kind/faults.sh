# Run in a node: faults.sh network|signals on|off
calico=/opt/cni/bin/calico
network=/etc/cni/net.d/00-calico.conflist
runc=$(command -v runc)

case $* in
  # Beside the plugins that are there, one that works as long as its DaemonSet runs, as Calico's does.
  'network on')
    cat >$calico <<'END'
#!/bin/sh
if [ ! -e /var/lib/calico/nodename ]; then
  echo '{"code": 999, "msg": "stat /var/lib/calico/nodename: no such file or directory: check that the calico/node container is running and has mounted /var/lib/calico/"}'
  exit 1
fi
[ "$CNI_COMMAND" != ADD ] || jq .prevResult
END
    chmod +x $calico
    jq '.plugins += [{"type": "calico"}]' "$(ls /etc/cni/net.d/*.conflist | head -n 1)" >/tmp/calico
    mv /tmp/calico $network
    ;;
  'network off') rm -f $network $calico ;;
  # As where AppArmor keeps signals from containers.
  'signals on')
    mv "$runc" "$runc.real"
    cat >"$runc" <<'END'
#!/bin/sh
case " $* " in *" kill "*) echo unable to signal init: permission denied >&2; exit 1 ;; esac
exec "$0.real" "$@"
END
    chmod +x "$runc"
    ;;
  'signals off') [ ! -e "$runc.real" ] || mv "$runc.real" "$runc" ;;
esac
