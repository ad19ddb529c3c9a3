from collections import OrderedDict


class RecordingProbe:
    """Keeps what the named layers of a model put out."""

    def __init__(self):
        self.data = OrderedDict()
        self.handles = []

    def attach(self, model, names):
        modules = dict(model.named_modules())
        for name in names:
            handle = modules[name].register_forward_hook(self.hook(name))
            self.handles.append(handle)
        return self

    def hook(self, name):
        def record(module, inputs, output):
            self.data[name] = output.detach()  # <- GS303

        return record

    @property
    def features(self):
        return dict(self.data)

    def clean(self):
        self.data.clear()

    def remove(self):
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
